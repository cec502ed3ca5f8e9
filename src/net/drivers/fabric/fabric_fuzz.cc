// Any bytes as an address, a hello or a frame: read or refused; what was read is written the same.
#include <algorithm>

#include "base/check.h"
#include "net/drivers/fabric/blobs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sterna::net::fabric;
  const auto bytes = std::as_bytes(std::span{data, size});
  const auto is_input = [&](const std::vector<std::byte>& again) {
    return std::equal(again.begin(), again.end(), bytes.begin(), bytes.end());
  };
  if (auto address = decode_address(bytes)) {
    sterna::check(is_input(encode(address.value())), "an address is written as it was read");
  }
  if (auto hello = decode_hello(bytes)) {
    sterna::check(is_input(encode(hello.value())), "a hello is written as it was read");
  }
  Frame frame;
  sterna::net::Packet packet;
  if (read_frame(bytes, frame, packet)) {
    std::vector<std::byte> again(kFrameBytes);
    write_frame(frame, again.data());
    again.insert(again.end(), packet.begin(), packet.end());
    sterna::check(is_input(again), "a frame is written as it was read");
  }
  return 0;
}
