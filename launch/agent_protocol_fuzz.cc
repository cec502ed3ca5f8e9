// Relays from bytes of any kind: decoders refuse or understand, and what they understand they can
// say again.
#include "launch/agent_protocol.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"

using namespace sterna::launch;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto relay = decode_relay({reinterpret_cast<const std::byte*>(data), size});
  if (!relay) {
    return 0;
  }
  const std::span<const std::byte> bytes = relay.value().bytes;
  std::vector<std::byte> again{bytes.begin(), bytes.end()};
  // Of our version, else a seed were of no use after the next.
  const std::uint32_t version = sterna::runtime::kControlVersion;
  if (again.size() >= sizeof version) {
    std::memcpy(again.data(), &version, sizeof version);
  }
  if (auto order = decode_order(again); order) {
    sterna::check(encode_order(order.value()) == again, "an order has one form");
  }
  if (auto end = decode_end(bytes); end) {
    again = encode_end(end.value());
    sterna::check(std::ranges::equal(again, bytes), "an end has one form");
  }
  if (auto taken = decode_taken(bytes); taken) {
    again = encode_taken(taken.value());
    sterna::check(std::ranges::equal(again, bytes), "a number of bytes has one form");
  }
  return 0;
}
