// Little-endian bytes, bounded on both sides: how packets, blobs and files are written and read.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sterna::wire {

static_assert(std::endian::native == std::endian::little, "big-endian machines need swaps here");

/// Writes into a given span, or at the end of a vector up to a bound. What does not fit is not
/// written, and then ok() is false for ever: check it once, at the end.
class Writer {
 public:
  explicit Writer(std::span<std::byte> memory) noexcept : memory_{memory} {}
  /// Appends; `buffer` holds `bytes_max` bytes at most, with what it holds already.
  Writer(std::vector<std::byte>& buffer, std::size_t bytes_max) noexcept
      : buffer_{&buffer}, bytes_max_{bytes_max} {}

  void u8(std::uint8_t value) noexcept { number(value); }
  void u16(std::uint16_t value) noexcept { number(value); }
  void u32(std::uint32_t value) noexcept { number(value); }
  void u64(std::uint64_t value) noexcept { number(value); }
  void i32(std::int32_t value) noexcept { number(value); }
  void i64(std::int64_t value) noexcept { number(value); }
  void f64(double value) noexcept { number(value); }
  void boolean(bool value) noexcept { number(static_cast<std::uint8_t>(value)); }

  /// The bytes alone, without a length.
  void raw(std::span<const std::byte> bytes) noexcept;
  /// A 32-bit length, then the bytes.
  void blob(std::span<const std::byte> bytes) noexcept;
  void text(std::string_view text) noexcept;

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// Bytes written by this Writer.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  template <typename T>
  void number(T value) noexcept {
    raw(std::as_bytes(std::span{&value, 1}));
  }

  std::span<std::byte> memory_;
  std::vector<std::byte>* buffer_ = nullptr;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  bool ok_ = true;
};

/// Reads from a span that may come from a stranger. Never reads beyond it. A read that fails gives
/// zero or nothing, makes ok() false for ever, and consumes nothing more: check ok() before acting.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> memory) noexcept : rest_{memory} {}

  std::uint8_t u8() noexcept { return number<std::uint8_t>(); }
  std::uint16_t u16() noexcept { return number<std::uint16_t>(); }
  std::uint32_t u32() noexcept { return number<std::uint32_t>(); }
  std::uint64_t u64() noexcept { return number<std::uint64_t>(); }
  std::int32_t i32() noexcept { return number<std::int32_t>(); }
  std::int64_t i64() noexcept { return number<std::int64_t>(); }
  double f64() noexcept { return number<double>(); }
  /// 0 or 1; anything else fails.
  bool boolean() noexcept;

  /// `bytes` bytes of the input itself: they live as long as it does.
  std::span<const std::byte> raw(std::size_t bytes) noexcept;
  /// A 32-bit length of at most `bytes_max`, then the bytes.
  std::span<const std::byte> blob(std::size_t bytes_max) noexcept;
  std::string_view text(std::size_t bytes_max) noexcept;
  /// A 32-bit count of elements that take at least `element_bytes_min` each: refuses a count that
  /// the rest of the input cannot hold, so that a stranger cannot make us reserve memory.
  std::uint32_t count(std::size_t element_bytes_min) noexcept;

  /// What was read does not mean anything: as a failed read.
  void refuse() noexcept;

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// Everything was read, and well.
  [[nodiscard]] bool finished() const noexcept { return ok_ && rest_.empty(); }
  [[nodiscard]] std::size_t bytes_left() const noexcept { return rest_.size(); }

 private:
  template <typename T>
  T number() noexcept {
    T value{};
    const std::span<const std::byte> bytes = raw(sizeof value);
    if (bytes.size() == sizeof value) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace sterna::wire
