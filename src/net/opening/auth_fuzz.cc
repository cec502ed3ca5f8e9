// Any bytes given to either side of a handshake: it never crashes and never admits a stranger.
#include <cstdlib>

#include "base/check.h"
#include "net/opening/auth.h"

namespace {

using sterna::net::Handshake;

void feed(Handshake handshake, std::span<const std::byte> bytes) {
  while (handshake.bytes_wanted() != 0 && bytes.size() >= handshake.bytes_wanted()) {
    const std::size_t wanted = handshake.bytes_wanted();
    handshake.take(bytes.first(wanted));
    bytes = bytes.subspan(wanted);
  }
  sterna::check(handshake.state() != Handshake::State::proven &&
                    handshake.state() != Handshake::State::admitted,
                "who does not know the secret is not admitted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  sterna::net::JobSecret secret{};
  secret[0] = std::byte{7};
  const sterna::net::Nonce nonce = sterna::net::random_nonce();
  feed(Handshake::respond(secret, {.self = 1, .peer = 0, .node_count = 4}, nonce), bytes);
  feed(Handshake::initiate(secret, {.self = 0, .peer = 1, .node_count = 4}, nonce), bytes);
  return 0;
}
