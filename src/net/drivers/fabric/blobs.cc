// Writes and reads addresses, hellos and frames.
#include "net/drivers/fabric/blobs.h"

#include <cstring>

#include "base/wire.h"

namespace sterna::net::fabric {
namespace {

constexpr std::uint32_t kAddressMagic = 0x31424146;  // "FAB1"
constexpr std::uint32_t kHelloMagic = 0x32484146;    // "FAH2"
constexpr std::size_t kProviderBytesMax = 128;
constexpr std::size_t kControlBytesMax = 1024;

}  // namespace

std::vector<std::byte> encode(const Address& address) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 2048};
  writer.u32(kAddressMagic);
  writer.text(address.provider);
  writer.blob(address.control);
  check(writer.ok(), "the address of an endpoint fits");
  return bytes;
}

Result<Address> decode_address(Packet bytes) noexcept {
  wire::Reader reader{bytes};
  const bool is_ours = reader.u32() == kAddressMagic;
  Address address;
  address.provider = reader.text(kProviderBytesMax);
  const auto control = reader.blob(kControlBytesMax);
  if (!is_ours || !reader.finished()) {
    return Error{Errc::malformed,
                 "the address of a node does not have the format of the driver fabric"};
  }
  address.control.assign(control.begin(), control.end());
  return address;
}

std::vector<std::byte> encode(const Hello& hello) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 1024};
  writer.u32(kHelloMagic);
  writer.u64(hello.token);
  writer.u32(hello.window);
  writer.u32(hello.message_bytes);
  writer.u32(hello.can_read ? 1 : 0);
  writer.blob(hello.name);
  check(writer.ok(), "the name of an endpoint fits");
  return bytes;
}

Result<Hello> decode_hello(Packet bytes) noexcept {
  wire::Reader reader{bytes};
  const bool is_ours = reader.u32() == kHelloMagic;
  Hello hello;
  hello.token = reader.u64();
  hello.window = reader.u32();
  hello.message_bytes = reader.u32();
  const std::uint32_t can_read = reader.u32();
  hello.can_read = can_read == 1;
  const auto name = reader.blob(kNameBytesMax);
  if (!is_ours || !reader.finished() || name.empty() || can_read > 1) {
    return Error{Errc::malformed, "its hello does not have the format of the driver fabric"};
  }
  hello.name.assign(name.begin(), name.end());
  return hello;
}

void write_frame(const Frame& frame, std::byte* to) noexcept {
  std::memcpy(to, &frame, kFrameBytes);
}

bool read_frame(Packet message, Frame& frame, Packet& packet) noexcept {
  if (message.size() < kFrameBytes) {
    return false;
  }
  std::memcpy(&frame, message.data(), kFrameBytes);
  packet = message.subspan(kFrameBytes);
  switch (frame.kind) {
    case FrameKind::data:
      return !packet.empty();
    case FrameKind::taken:
    case FrameKind::end:
      return packet.empty();
    case FrameKind::lend:
      return packet.size() == kLoanBytes;
    case FrameKind::returned:
      return packet.size() == kLoanEndBytes;
  }
  return false;
}

}  // namespace sterna::net::fabric
