// Any bytes as the address of a node: decoded or refused, never more.
#include "base/check.h"
#include "net/drivers/tcp/address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto decoded = sterna::net::tcp::decode(std::as_bytes(std::span{data, size}));
  if (decoded) {
    const auto again = sterna::net::tcp::encode(decoded.value());
    sterna::check(again.size() == size, "an address has one encoding");
    static_cast<void>(decoded.value().addresses.front().text());
  }
  return 0;
}
