// Encoding and defensive decoding of calls. What is not there costs no byte: flags beside the kind
// say what is.
#include "rpc/message.h"

#include <algorithm>

namespace sterna::rpc {
namespace {

constexpr std::uint8_t kKindMask = 0x0f;
constexpr std::uint8_t kOfRank = 0x10;
constexpr std::uint8_t kHasWish = 0x20;
constexpr std::uint8_t kHasParts = 0x40;
constexpr std::uint8_t kHasStatus = 0x80;
constexpr std::size_t kPartBytes = 12;

std::uint8_t flags_of(const Message& message) noexcept {
  const bool has_wish = message.wish.priority != kAsRegistered || message.wish.stack_kib != 0;
  return static_cast<std::uint8_t>(
      (message.reply_to.rank != kNoRank ? kOfRank : 0) | (has_wish ? kHasWish : 0) |
      (message.parts.empty() ? 0 : kHasParts) | (message.status != 0 ? kHasStatus : 0));
}

/// What one side would not say in this way, or cannot mean.
bool is_sensible(const Message& message, std::uint8_t flags) noexcept {
  std::uint64_t total = 0;
  std::uint32_t last_offset = 0;
  for (std::uint32_t i = 0; i < message.part_count; ++i) {
    const Part part = part_of(message, i);
    total += std::min(part.bytes, kPartBytesMax);
    if (part.offset < last_offset || part.offset > message.body.size() ||
        part.bytes > kPartBytesMax || total > kPartBytesMax) {
      return false;
    }
    last_offset = part.offset;
  }
  const bool is_request = message.kind == MessageKind::request;
  return message.kind >= MessageKind::request && message.kind <= MessageKind::error &&
         ((flags & kOfRank) == 0 || message.reply_to.rank != kNoRank) &&
         ((flags & kHasWish) == 0 || message.wish.priority != kAsRegistered ||
          message.wish.stack_kib != 0) &&
         ((flags & kHasStatus) == 0 || message.status != 0) &&
         ((flags & kHasParts) == 0 || message.part_count != 0) &&
         ((flags & kHasWish) == 0 || is_request) && ((flags & kHasStatus) == 0 || !is_request);
}

}  // namespace

MessageHead::MessageHead(const Message& message) noexcept {
  wire::Writer writer{memory_};
  const std::uint8_t flags = flags_of(message);
  writer.u8(static_cast<std::uint8_t>(message.kind) | flags);
  writer.u64(message.reply_to.id);
  if (message.kind == MessageKind::request) {
    writer.u64(message.service);
  }
  if ((flags & kOfRank) != 0) {
    writer.u32(message.reply_to.rank);
    writer.u64(message.reply_to.cookie);
  }
  if ((flags & kHasWish) != 0) {
    writer.u8(message.wish.priority);
    writer.u32(message.wish.stack_kib);
  }
  if ((flags & kHasStatus) != 0) {
    writer.u32(message.status);
    writer.text(message.text.substr(0, kErrorTextBytesMax));
  }
  if ((flags & kHasParts) != 0) {
    writer.u32(message.number);
    writer.u16(static_cast<std::uint16_t>(message.parts.size()));
    for (const Part& part : message.parts) {
      writer.u32(part.offset);
      writer.u64(part.bytes);
    }
  }
  check(writer.ok() && message.parts.size() <= kPartsMax, "the head of a call is bounded");
  bytes_ = writer.bytes();
}

Result<Message> decode(std::span<const std::byte> bytes) noexcept {
  wire::Reader reader{bytes};
  Message message;
  const std::uint8_t first = reader.u8();
  message.kind = static_cast<MessageKind>(first & kKindMask);
  message.reply_to.id = reader.u64();
  if (message.kind == MessageKind::request) {
    message.service = reader.u64();
  }
  if ((first & kOfRank) != 0) {
    message.reply_to.rank = reader.u32();
    message.reply_to.cookie = reader.u64();
  }
  if ((first & kHasWish) != 0) {
    message.wish.priority = reader.u8();
    message.wish.stack_kib = reader.u32();
  }
  if ((first & kHasStatus) != 0) {
    message.status = reader.u32();
    message.text = reader.text(kErrorTextBytesMax);
  }
  if ((first & kHasParts) != 0) {
    message.number = reader.u32();
    message.part_count = reader.u16();
    message.raw_parts = reader.raw(message.part_count <= kPartsMax ? message.part_count * kPartBytes
                                                                   : bytes.size() + 1);
  }
  message.body = reader.raw(reader.bytes_left());
  if (!reader.ok() || !is_sensible(message, first & static_cast<std::uint8_t>(~kKindMask))) {
    return Errc::malformed;
  }
  return message;
}

Part part_of(const Message& message, std::uint32_t index) noexcept {
  wire::Reader reader{message.raw_parts.subspan(index * kPartBytes, kPartBytes)};
  Part part;
  part.offset = reader.u32();
  part.bytes = reader.u64();
  return part;
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
