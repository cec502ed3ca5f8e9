// Encoding and defensive decoding of calls.
#include "rpc/message.h"

#include <algorithm>

namespace sterna::rpc {

std::vector<std::byte> encode(const Message& message) {
  std::vector<std::byte> bytes;
  bytes.reserve(64 + message.body.size());
  wire::Writer writer{bytes, 64 + message.body.size()};
  writer.u8(static_cast<std::uint8_t>(message.kind));
  writer.u64(message.service);
  writer.u32(message.reply_to.node);
  writer.u32(message.reply_to.rank);
  writer.u64(message.reply_to.id);
  writer.u64(message.reply_to.cookie);
  writer.raw(message.body);
  check(writer.ok(), "the header of a call is at most 64 bytes");
  return bytes;
}

Result<Message> decode(std::span<const std::byte> bytes) noexcept {
  wire::Reader reader{bytes};
  Message message;
  const std::uint8_t kind = reader.u8();
  message.service = reader.u64();
  message.reply_to.node = reader.u32();
  message.reply_to.rank = reader.u32();
  message.reply_to.id = reader.u64();
  message.reply_to.cookie = reader.u64();
  message.body = reader.raw(reader.bytes_left());
  if (!reader.ok() || kind < 1 || kind > 3) {
    return Errc::malformed;
  }
  message.kind = static_cast<MessageKind>(kind);
  return message;
}

std::vector<std::byte> encode_error(const Error& error) {
  std::vector<std::byte> bytes;
  const std::string_view text{error.text.data(), std::min(error.text.size(), kErrorTextBytesMax)};
  wire::Writer writer{bytes, 8 + kErrorTextBytesMax};
  writer.u8(static_cast<std::uint8_t>(error.code));
  writer.text(text);
  return bytes;
}

Error decode_error(std::span<const std::byte> body) {
  wire::Reader reader{body};
  const std::uint8_t code = reader.u8();
  const std::string_view text = reader.text(kErrorTextBytesMax);
  if (!reader.finished() || code > static_cast<std::uint8_t>(Errc::system)) {
    return {Errc::malformed, "a reply that cannot be read"};
  }
  return {static_cast<Errc>(code), std::string{text}};
}

}  // namespace sterna::rpc
