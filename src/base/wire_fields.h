// One list of fields for both directions: what a message holds is said once, in a function over
// either of these two, and cannot be written in one way and read in another.
//
//   void order_fields(auto& field, auto& order) {
//     field.number(order.rank);
//     field.text(order.reason, 256);
//   }
//   wire::FieldWriter out{writer};  order_fields(out, order);
//   wire::FieldReader in{reader};   order_fields(in, order);
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/wire.h"

namespace sterna::wire {

class FieldWriter {
 public:
  explicit FieldWriter(Writer& writer) noexcept : writer_{writer} {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  void number(const T& value) noexcept {
    writer_.raw(std::as_bytes(std::span{&value, 1}));
  }
  void byte(std::byte value) noexcept { writer_.raw({&value, 1}); }
  void boolean(bool value) noexcept { writer_.boolean(value); }
  /// Values from `first` to `last`, on the wire as their numbers.
  template <typename E>
  void choice(const E& value, E /*first*/, E /*last*/) noexcept {
    number(static_cast<std::underlying_type_t<E>>(value));
  }
  /// What is longer is cut.
  void text(std::string_view value, std::size_t bytes_max) noexcept {
    writer_.text(value.substr(0, bytes_max));
  }
  /// The caller keeps the bound.
  void blob(std::span<const std::byte> value, std::size_t /*bytes_max*/) noexcept {
    writer_.blob(value);
  }
  /// A count, then `one(field, element)` of each.
  template <typename T, typename One>
  void list(const std::vector<T>& values, std::size_t /*element_bytes_min*/, One one) {
    writer_.u32(static_cast<std::uint32_t>(values.size()));
    table(values, values.size(), 0, one);
  }
  /// The same where the count is known from other fields.
  template <typename T, typename One>
  void table(const std::vector<T>& values, std::size_t count, std::size_t /*element_bytes_min*/,
             One one) {
    check(values.size() == count, "a table has the length that other fields say");
    for (const T& value : values) {
      one(*this, value);
    }
  }
  void refuse_unless(bool) const noexcept {}

 private:
  Writer& writer_;
};

/// After a read that failed the values are zero or what they were; the Reader says that it failed.
class FieldReader {
 public:
  explicit FieldReader(Reader& reader) noexcept : reader_{reader} {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  void number(T& value) noexcept {
    value = T{};
    const std::span<const std::byte> bytes = reader_.raw(sizeof value);
    if (bytes.size() == sizeof value) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
  }
  void byte(std::byte& value) noexcept {
    const std::span<const std::byte> bytes = reader_.raw(1);
    value = bytes.empty() ? std::byte{} : bytes[0];
  }
  void boolean(bool& value) noexcept { value = reader_.boolean(); }
  template <typename E>
  void choice(E& value, E first, E last) noexcept {
    std::underlying_type_t<E> read{};
    number(read);
    if (read < static_cast<decltype(read)>(first) || read > static_cast<decltype(read)>(last)) {
      reader_.refuse();
      read = static_cast<decltype(read)>(first);
    }
    value = static_cast<E>(read);
  }
  /// A view points into the input.
  template <typename T>
  void text(T& value, std::size_t bytes_max) {
    value = reader_.text(bytes_max);
  }
  void blob(std::span<const std::byte>& value, std::size_t bytes_max) noexcept {
    value = reader_.blob(bytes_max);
  }
  /// A count that the rest of the input cannot hold is refused, so that a stranger cannot make us
  /// reserve memory.
  template <typename T, typename One>
  void list(std::vector<T>& values, std::size_t element_bytes_min, One one) {
    table(values, reader_.count(element_bytes_min), element_bytes_min, one);
  }
  template <typename T, typename One>
  void table(std::vector<T>& values, std::size_t count, std::size_t element_bytes_min, One one) {
    refuse_unless(count <= reader_.bytes_left() / element_bytes_min);
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) {
      one(*this, values.emplace_back());
    }
  }
  /// For rules between fields.
  void refuse_unless(bool is_right) noexcept {
    if (!is_right) {
      reader_.refuse();
    }
  }

 private:
  Reader& reader_;
};

}  // namespace sterna::wire
