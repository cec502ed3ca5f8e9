// Encoding and defensive decoding of calls. What is not there costs no byte: flags beside the kind
// say what is.
#include "rpc/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace sterna::rpc {
namespace {

constexpr int kFlagBits = 64 - kIdBits;
constexpr std::uint64_t kKindMask = 0x0f;
constexpr std::uint64_t kFlagMask = 0xf0;
constexpr std::uint8_t kOfRank = 0x10;
constexpr std::uint8_t kHasWish = 0x20;
constexpr std::uint8_t kHasParts = 0x40;
constexpr std::uint8_t kHasStatus = 0x80;     // Not of a request,
constexpr std::uint8_t kHasAddresses = 0x80;  // but this: its parts have; without any: a tail.
constexpr std::size_t kPartBytes = 12;
constexpr std::size_t kAddressBytes = 8;  // More, of parts that are read.
// Behind the length of a tail: the arguments lie where they are aligned, if the packet does.
constexpr std::size_t kTailPadding = 12;

std::size_t part_bytes(bool are_read) noexcept {
  return kPartBytes + (are_read ? kAddressBytes : 0);
}

std::uint8_t flags_of(const Message& message) noexcept {
  const bool has_wish = !message.wish.is_none();
  return static_cast<std::uint8_t>(
      (message.reply_to.rank != kNoRank ? kOfRank : 0) | (has_wish ? kHasWish : 0) |
      (message.parts.empty() ? 0 : kHasParts) | (message.status != 0 ? kHasStatus : 0) |
      (message.are_read || message.tail_bytes != 0 ? kHasAddresses : 0));
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
  if (message.kind == MessageKind::begun || message.kind == MessageKind::wanted) {
    return flags == 0 && message.body.empty();
  }
  // Memory stays until the reply; of a tail nothing is counted.
  if ((message.are_read || message.tail_bytes != 0) && message.reply_to.id == 0) {
    return false;
  }
  return message.kind >= MessageKind::request && message.kind <= MessageKind::error &&
         ((flags & kOfRank) == 0 || message.reply_to.rank != kNoRank) &&
         ((flags & kHasWish) == 0 || message.wish.priority != kAsRegistered ||
          message.wish.stack_kib != 0) &&
         ((flags & kHasStatus) == 0 || is_request || message.status != 0) &&
         ((flags & kHasParts) == 0 || message.part_count != 0) &&
         ((flags & kHasWish) == 0 || is_request);
}

/// What follows the first word, where it has something to say.
bool decode_more(std::span<const std::byte> bytes, std::uint8_t flags, Message& message) noexcept {
  wire::Reader reader{bytes};
  const bool is_request = message.kind == MessageKind::request;
  if (is_request) {
    message.service = reader.u64();
    message.are_read = (flags & kHasAddresses) != 0 && (flags & kHasParts) != 0;
  } else if (message.kind == MessageKind::wanted) {
    message.number = reader.u32();
  }
  if ((flags & kOfRank) != 0) {
    message.reply_to.rank = reader.u32();
    message.reply_to.cookie = reader.u64();
  }
  if ((flags & kHasWish) != 0) {
    message.wish.priority = reader.u8();
    message.wish.stack_kib = reader.u32();
  }
  if (!is_request && (flags & kHasStatus) != 0) {
    message.status = reader.u32();
    message.text = reader.text(kErrorTextBytesMax);
  }
  if ((flags & kHasParts) != 0) {
    message.number = reader.u32();
    message.part_count = reader.u16();
    message.raw_parts = reader.raw(message.part_count <= kPartsMax
                                       ? message.part_count * part_bytes(message.are_read)
                                       : bytes.size() + 1);
  }
  bool is_tail_right = true;
  if (is_request && (flags & kHasAddresses) != 0 && !message.are_read) {
    message.tail_bytes = reader.u32();
    const std::span<const std::byte> padding = reader.raw(kTailPadding);
    is_tail_right = message.tail_bytes != 0 && message.tail_bytes <= reader.bytes_left() &&
                    std::ranges::all_of(padding, [](std::byte one) { return one == std::byte{}; });
  }
  message.body = reader.raw(reader.bytes_left());
  return reader.ok() && is_tail_right && is_sensible(message, flags);
}

}  // namespace

MessageHead::MessageHead(const Message& message) {
  check(message.reply_to.id >> kIdBits == 0, "an id leaves room for what the message is");
  const std::uint8_t flags = flags_of(message);
  const std::uint64_t first =
      message.reply_to.id << kFlagBits | static_cast<std::uint8_t>(message.kind) | flags;
  const std::uint64_t words[2] = {first, message.service};
  bytes_ = message.kind == MessageKind::request ? sizeof words : sizeof first;
  std::memcpy(short_.data(), words, sizeof words);
  if (flags != 0 || message.kind == MessageKind::wanted) [[unlikely]] {
    add_more(message, flags);
  }
}

void MessageHead::add_more(const Message& message, std::uint8_t flags) {
  std::string_view text = message.text.substr(0, kErrorTextBytesMax);
  std::span<std::byte> memory{short_};
  const std::size_t parts_bytes = message.parts.size() * part_bytes(message.are_read);
  if (const std::size_t most = kFixedBytes + text.size() + parts_bytes; most > memory.size())
      [[unlikely]] {
    long_.reset(parts_bytes == 0 ? new (std::nothrow) std::byte[most] : new std::byte[most]);
    if (long_ != nullptr) {
      memory = {long_.get(), most};
      std::memcpy(memory.data(), short_.data(), bytes_);
    } else {
      text = text.substr(0, memory.size() - kFixedBytes);
    }
  }
  wire::Writer writer{memory.subspan(bytes_)};
  if (message.kind == MessageKind::wanted) {
    writer.u32(message.number);
  }
  if ((flags & kOfRank) != 0) {
    writer.u32(message.reply_to.rank);
    writer.u64(message.reply_to.cookie);
  }
  if ((flags & kHasWish) != 0) {
    writer.u8(message.wish.priority);
    writer.u32(message.wish.stack_kib);
  }
  if (message.status != 0) {
    writer.u32(message.status);
    writer.text(text);
  }
  if ((flags & kHasParts) != 0) {
    writer.u32(message.number);
    writer.u16(static_cast<std::uint16_t>(message.parts.size()));
    for (const Part& part : message.parts) {
      writer.u32(part.offset);
      writer.u64(part.bytes);
      if (message.are_read) {
        writer.u64(part.address);
      }
    }
  }
  if (message.tail_bytes != 0) {
    constexpr std::array<std::byte, kTailPadding> kNothing{};
    writer.u32(message.tail_bytes);
    writer.raw(kNothing);
  }
  check(writer.ok() && message.parts.size() <= kPartsMax, "the head of a call is bounded");
  bytes_ += writer.bytes();
}

bool decode(std::span<const std::byte> bytes, Message& message) noexcept {
  std::uint64_t first = 0;
  if (bytes.size() < sizeof first) {
    return false;
  }
  std::memcpy(&first, bytes.data(), sizeof first);
  message.kind = static_cast<MessageKind>(first & kKindMask);
  message.reply_to.id = first >> kFlagBits;
  const auto flags = static_cast<std::uint8_t>(first & kFlagMask);
  if (message.kind == MessageKind::reply && flags == 0) {
    message.body = bytes.subspan(sizeof first);
    return true;
  }
  if (message.kind == MessageKind::request && flags == 0) {
    if (bytes.size() < sizeof first + sizeof message.service) {
      return false;
    }
    std::memcpy(&message.service, bytes.data() + sizeof first, sizeof message.service);
    message.body = bytes.subspan(sizeof first + sizeof message.service);
    return true;
  }
  return decode_more(bytes.subspan(sizeof first), flags, message);
}

bool decode(std::span<const std::byte> head, std::span<const std::byte> body,
            Message& message) noexcept {
  if (head.empty()) {
    return decode(body, message);
  }
  // Parts, which belong to places in the body, have a head that is too long for that.
  if (!decode(head, message) || !message.body.empty() || message.part_count != 0 ||
      (message.kind == MessageKind::begun && !body.empty())) {
    return false;
  }
  message.body = body;
  return true;
}

Part part_of(const Message& message, std::uint32_t index) noexcept {
  const std::size_t each = part_bytes(message.are_read);
  wire::Reader reader{message.raw_parts.subspan(index * each, each)};
  Part part;
  part.offset = reader.u32();
  part.bytes = reader.u64();
  part.address = message.are_read ? reader.u64() : 0;
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
