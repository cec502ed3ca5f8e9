// Conversion to and from external32, and counting elements: walks of the plan that keeps basic
// types.
#include "mpi/datatype/external.h"

#include <bit>
#include <concepts>
#include <cstring>

#include "mpi/datatype/walk.h"

namespace sterna::mpi {
namespace {

static_assert(std::endian::native == std::endian::little, "big-endian machines need no swaps");

/// IEEE binary128: external32's long double. The processor's own, or libgcc's.
using Quad = float __attribute__((mode(TF)));

void reverse(std::byte* to, const std::byte* from, std::uint32_t bytes) noexcept {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    to[i] = from[bytes - 1 - i];
  }
}

template <std::unsigned_integral Word>
constexpr Word reversed(Word word) noexcept {
  if constexpr (sizeof(Word) == 2) {
    return __builtin_bswap16(word);
  } else if constexpr (sizeof(Word) == 4) {
    return __builtin_bswap32(word);
  } else {
    return __builtin_bswap64(word);
  }
}

template <std::unsigned_integral Word>
void reverse_words(std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, from + i * sizeof(Word), sizeof(Word));
    word = reversed(word);
    std::memcpy(to + i * sizeof(Word), &word, sizeof(Word));
  }
}

/// `count` numbers of `bytes` bytes each.
void reverse_all(std::byte* to, const std::byte* from, std::uint64_t count,
                 std::uint32_t bytes) noexcept {
  switch (bytes) {
    case 1:
      std::memcpy(to, from, count);
      return;
    case 2:
      reverse_words<std::uint16_t>(to, from, count);
      return;
    case 4:
      reverse_words<std::uint32_t>(to, from, count);
      return;
    case 8:
      reverse_words<std::uint64_t>(to, from, count);
      return;
    default:
      for (std::uint64_t i = 0; i < count; ++i) {
        reverse(to + i * bytes, from + i * bytes, bytes);
      }
      return;
  }
}

/// Numbers of which a basic type is made: complex ones have two.
std::uint32_t number_count(Basic basic) noexcept {
  return basic >= Basic::complex16 && basic <= Basic::complex128 ? 2 : 1;
}

bool is_extended(Basic basic) noexcept {
  return basic == Basic::float_extended || basic == Basic::complex_extended;
}

bool is_long(Basic basic) noexcept {
  return basic == Basic::signed_long || basic == Basic::unsigned_long;
}

/// Numbers that are shorter in external32 lose their upper bytes, as the standard has it.
template <std::uint32_t kBytes, std::uint32_t kExternal>
void narrow(std::byte* to, const std::byte* from, std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    reverse(to + i * kExternal, from + i * kBytes, kExternal);
  }
}

template <std::uint32_t kBytes, std::uint32_t kExternal>
void widen(std::byte* to, const std::byte* from, std::uint64_t count, bool is_signed) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_negative = is_signed && (from[i * kExternal] & std::byte{0x80}) != std::byte{0};
    reverse(to + i * kBytes, from + i * kExternal, kExternal);
    std::memset(to + i * kBytes + kExternal, is_negative ? 0xff : 0, kBytes - kExternal);
  }
}

/// Blocks are whole elements: bounds of parts of messages never reach these walks.
class ExternalPacker {
 public:
  explicit ExternalPacker(std::byte* stream) noexcept : stream_{stream} {}

  bool block(const std::byte* address, std::uint64_t bytes, Basic basic) noexcept {
    const BasicSizes sizes = sizes_of(basic);
    const std::uint64_t elements = bytes / sizes.bytes;
    const std::uint32_t numbers = number_count(basic);
    if (is_extended(basic)) {
      for (std::uint64_t i = 0; i < elements * numbers; ++i) {
        long double value = 0;
        std::memcpy(&value, address + i * sizeof value, sizeof value);
        const auto quad = static_cast<Quad>(value);
        reverse(stream_ + i * sizeof quad, reinterpret_cast<const std::byte*>(&quad), sizeof quad);
      }
    } else if (basic == Basic::wide_character) {
      narrow<4, 2>(stream_, address, elements);
    } else if (is_long(basic)) {
      narrow<8, 4>(stream_, address, elements);
    } else {
      reverse_all(stream_, address, elements * numbers, sizes.bytes / numbers);
    }
    stream_ += elements * sizes.external_bytes;
    return true;
  }

  bool blocks(const std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    for (; count != 0; --count, at += loop.stride) {
      block(at, loop.block_bytes, loop.basic);
    }
    return true;
  }

 private:
  std::byte* stream_;
};

class ExternalUnpacker {
 public:
  explicit ExternalUnpacker(const std::byte* stream) noexcept : stream_{stream} {}

  bool block(std::byte* address, std::uint64_t bytes, Basic basic) noexcept {
    const BasicSizes sizes = sizes_of(basic);
    const std::uint64_t elements = bytes / sizes.bytes;
    const std::uint32_t numbers = number_count(basic);
    if (is_extended(basic)) {
      for (std::uint64_t i = 0; i < elements * numbers; ++i) {
        Quad quad = 0;
        reverse(reinterpret_cast<std::byte*>(&quad), stream_ + i * sizeof quad, sizeof quad);
        const auto value = static_cast<long double>(quad);
        std::memcpy(address + i * sizeof value, &value, sizeof value);
      }
    } else if (basic == Basic::wide_character) {
      widen<4, 2>(address, stream_, elements, false);
    } else if (is_long(basic)) {
      widen<8, 4>(address, stream_, elements, basic == Basic::signed_long);
    } else {
      reverse_all(address, stream_, elements * numbers, sizes.bytes / numbers);
    }
    stream_ += elements * sizes.external_bytes;
    return true;
  }

  bool blocks(std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    for (; count != 0; --count, at += loop.stride) {
      block(at, loop.block_bytes, loop.basic);
    }
    return true;
  }

 private:
  const std::byte* stream_;
};

/// Adds up elements and their bytes in external32.
/// A block that ends inside of an element counts its whole ones.
class Counter {
 public:
  bool block(const std::byte* /*address*/, std::uint64_t bytes, Basic basic) noexcept {
    const BasicSizes sizes = sizes_of(basic);
    elements_ += bytes / sizes.bytes;
    external_bytes_ += bytes / sizes.bytes * sizes.external_bytes;
    is_whole_ = is_whole_ && bytes % sizes.bytes == 0;
    return true;
  }
  bool blocks(const std::byte* at, const Loop& loop, std::uint64_t count) noexcept {
    const BasicSizes sizes = sizes_of(loop.basic);
    elements_ += count * (loop.block_bytes / sizes.bytes);
    external_bytes_ += count * (loop.block_bytes / sizes.bytes) * sizes.external_bytes;
    static_cast<void>(at);
    return true;
  }
  [[nodiscard]] std::uint64_t elements() const noexcept { return elements_; }
  [[nodiscard]] std::uint64_t external_bytes() const noexcept { return external_bytes_; }
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

 private:
  std::uint64_t elements_ = 0;
  std::uint64_t external_bytes_ = 0;
  bool is_whole_ = true;
};

}  // namespace

std::uint64_t bytes_of_elements(const Datatype& type, std::uint64_t elements) noexcept {
  if (type.element_count == 0) {
    return 0;
  }
  const std::uint64_t whole =
      elements / type.element_count * static_cast<std::uint64_t>(type.bytes);
  // The fewest bytes of an instance that hold the rest of the elements: counts grow with bytes.
  const std::uint64_t rest = elements % type.element_count;
  std::uint64_t low = 0;
  std::uint64_t high = static_cast<std::uint64_t>(type.bytes);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    Counter counter;
    walk(TypedBuffer::of(nullptr, 1, type), type.elements, 0, middle, counter);
    if (counter.elements() < rest) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return whole + low;
}

std::uint64_t external_bytes(const Datatype& type) noexcept {
  Counter counter;
  walk(TypedBuffer::of(nullptr, 1, type), type.elements, 0, ~std::uint64_t{0}, counter);
  return counter.external_bytes();
}

std::uint64_t pack_external(const TypedBuffer& from, std::byte* stream) noexcept {
  ExternalPacker packer{stream};
  walk(from, from.type->elements, 0, ~std::uint64_t{0}, packer);
  return from.count * external_bytes(*from.type);
}

std::uint64_t unpack_external(const TypedBuffer& into, const std::byte* stream) noexcept {
  ExternalUnpacker unpacker{stream};
  walk(into, into.type->elements, 0, ~std::uint64_t{0}, unpacker);
  return into.count * external_bytes(*into.type);
}

std::uint64_t count_elements(const Datatype& type, std::uint64_t bytes) noexcept {
  const auto instance = static_cast<std::uint64_t>(type.bytes);
  if (instance == 0) {
    return bytes == 0 ? 0 : kNotWhole;
  }
  Counter rest;
  if (bytes % instance != 0) {
    walk(TypedBuffer::of(nullptr, 1, type), type.elements, 0, bytes % instance, rest);
  }
  return rest.is_whole() ? bytes / instance * type.element_count + rest.elements() : kNotWhole;
}

}  // namespace sterna::mpi
