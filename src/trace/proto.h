// As much of the encoding of protocol buffers as traces need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sterna::trace {

enum class ProtoType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// A message that is being written; give bytes() to the message around it.
class ProtoWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, ProtoType::varint);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, ProtoType::fixed64);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void bytes(std::uint32_t field, std::string_view value) {
    tag(field, ProtoType::bytes);
    varint(value.size());
    text_.append(value);
  }
  void message(std::uint32_t field, const ProtoWriter& value) { bytes(field, value.text_); }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  void clear() noexcept { text_.clear(); }

 private:
  void tag(std::uint32_t field, ProtoType type) {
    varint(std::uint64_t{field} << 3 | static_cast<std::uint8_t>(type));
  }
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      text_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    text_.push_back(static_cast<char>(value));
  }

  std::string text_;
};

struct ProtoField {
  std::uint32_t number = 0;
  ProtoType type = ProtoType::varint;
  std::uint64_t value = 0;           // Of numbers.
  std::span<const std::byte> bytes;  // Of bytes: part of the input.
};

/// The fields of a message, one after the other. Stops for good at the first that makes no sense.
class ProtoReader {
 public:
  explicit ProtoReader(std::span<const std::byte> bytes) noexcept : rest_{bytes} {}

  /// False: the end, or broken (see is_broken).
  [[nodiscard]] bool next(ProtoField& field) noexcept {
    if (rest_.empty() || is_broken_) {
      return false;
    }
    const std::uint64_t tag = varint();
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.type = static_cast<ProtoType>(tag & 7);
    switch (field.type) {
      case ProtoType::varint:
        field.value = varint();
        break;
      case ProtoType::fixed64:
        field.value = fixed(8);
        break;
      case ProtoType::fixed32:
        field.value = fixed(4);
        break;
      case ProtoType::bytes:
        field.bytes = take(varint());
        break;
      default:
        is_broken_ = true;
    }
    return !is_broken_;
  }
  [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }

 private:
  std::span<const std::byte> take(std::uint64_t count) noexcept {
    if (is_broken_ || count > rest_.size()) {
      is_broken_ = true;
      return {};
    }
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::uint64_t fixed(std::size_t count) noexcept {
    std::uint64_t value = 0;
    const std::span<const std::byte> bytes = take(count);
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
  }
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::span<const std::byte> byte = take(1);
      if (byte.empty()) {
        return 0;
      }
      const auto bits = static_cast<std::uint64_t>(byte[0]);
      value |= (bits & 0x7f) << shift;
      if ((bits & 0x80) == 0) {
        return value;
      }
    }
    is_broken_ = true;
    return 0;
  }

  std::span<const std::byte> rest_;
  bool is_broken_ = false;
};

}  // namespace sterna::trace
