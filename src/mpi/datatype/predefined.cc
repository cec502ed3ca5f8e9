// The predefined datatypes: one row each, and the constant objects made of the rows.
#include <algorithm>
#include <array>
#include <utility>

#include "mpi/datatype/basic.h"
#include "mpi/datatype/datatype.h"

namespace sterna::mpi {
namespace {

constexpr std::uint8_t kBasicBytes[kBasicCount] = {
    0,                             // none
    1, 1,  1,  4,                  // byte, packed, character, wide_character
    1, 2,  4,  8,  16,             // int8 ... int128
    1, 2,  4,  8,                  // uint8 ... uint64
    8, 8,                          // signed_long, unsigned_long
    2, 4,  8,  16, 16,             // float16, float32, float64, float_extended, float128
    4, 8,  16, 32, 32,             // complex16, complex32, complex64, complex_extended, complex128
    1, 1,  2,  4,  8,  16,         // bool8, logical8 ... logical128
    8, 8,  8,                      // address, offset, count
    8, 12, 12, 8,  6,  20, 8, 16,  // pairs
};
static_assert(sizeof(wchar_t) == 4 && sizeof(long double) == 16 && sizeof(long) == 8);

/// `value` is the handle.
struct Row {
  std::uint16_t value;
  Basic basic;
  const char* name;
};

constexpr Row kRows[] = {
    {0x200, Basic::none, "MPI_DATATYPE_NULL"},
    {0x201, Basic::address, "MPI_AINT"},
    {0x202, Basic::count, "MPI_COUNT"},
    {0x203, Basic::offset, "MPI_OFFSET"},
    {0x207, Basic::packed, "MPI_PACKED"},
    {0x208, Basic::int16, "MPI_SHORT"},
    {0x209, Basic::int32, "MPI_INT"},
    {0x20a, Basic::signed_long, "MPI_LONG"},
    {0x20b, Basic::int64, "MPI_LONG_LONG_INT"},
    {0x20c, Basic::uint16, "MPI_UNSIGNED_SHORT"},
    {0x20d, Basic::uint32, "MPI_UNSIGNED"},
    {0x20e, Basic::unsigned_long, "MPI_UNSIGNED_LONG"},
    {0x20f, Basic::uint64, "MPI_UNSIGNED_LONG_LONG"},
    {0x210, Basic::float32, "MPI_FLOAT"},
    {0x212, Basic::complex32, "MPI_C_COMPLEX"},
    {0x213, Basic::complex32, "MPI_CXX_FLOAT_COMPLEX"},
    {0x214, Basic::float64, "MPI_DOUBLE"},
    {0x216, Basic::complex64, "MPI_C_DOUBLE_COMPLEX"},
    {0x217, Basic::complex64, "MPI_CXX_DOUBLE_COMPLEX"},
    {0x218, Basic::logical32, "MPI_LOGICAL"},
    {0x219, Basic::int32, "MPI_INTEGER"},
    {0x21a, Basic::float32, "MPI_REAL"},
    {0x21b, Basic::complex32, "MPI_COMPLEX"},
    {0x21c, Basic::float64, "MPI_DOUBLE_PRECISION"},
    {0x21d, Basic::complex64, "MPI_DOUBLE_COMPLEX"},
    {0x21e, Basic::character, "MPI_CHARACTER"},
    {0x220, Basic::float_extended, "MPI_LONG_DOUBLE"},
    {0x224, Basic::complex_extended, "MPI_C_LONG_DOUBLE_COMPLEX"},
    {0x225, Basic::complex_extended, "MPI_CXX_LONG_DOUBLE_COMPLEX"},
    {0x228, Basic::pair_float_int, "MPI_FLOAT_INT"},
    {0x229, Basic::pair_double_int, "MPI_DOUBLE_INT"},
    {0x22a, Basic::pair_long_int, "MPI_LONG_INT"},
    {0x22b, Basic::pair_int_int, "MPI_2INT"},
    {0x22c, Basic::pair_short_int, "MPI_SHORT_INT"},
    {0x22d, Basic::pair_extended_int, "MPI_LONG_DOUBLE_INT"},
    {0x230, Basic::pair_float_float, "MPI_2REAL"},
    {0x231, Basic::pair_double_double, "MPI_2DOUBLE_PRECISION"},
    {0x232, Basic::pair_int_int, "MPI_2INTEGER"},
    {0x238, Basic::bool8, "MPI_C_BOOL"},
    {0x239, Basic::bool8, "MPI_CXX_BOOL"},
    {0x23c, Basic::wide_character, "MPI_WCHAR"},
    {0x240, Basic::int8, "MPI_INT8_T"},
    {0x241, Basic::uint8, "MPI_UINT8_T"},
    {0x243, Basic::character, "MPI_CHAR"},
    {0x244, Basic::int8, "MPI_SIGNED_CHAR"},
    {0x245, Basic::uint8, "MPI_UNSIGNED_CHAR"},
    {0x247, Basic::byte, "MPI_BYTE"},
    {0x248, Basic::int16, "MPI_INT16_T"},
    {0x249, Basic::uint16, "MPI_UINT16_T"},
    {0x250, Basic::int32, "MPI_INT32_T"},
    {0x251, Basic::uint32, "MPI_UINT32_T"},
    {0x258, Basic::int64, "MPI_INT64_T"},
    {0x259, Basic::uint64, "MPI_UINT64_T"},
    {0x2c0, Basic::logical8, "MPI_LOGICAL1"},
    {0x2c1, Basic::int8, "MPI_INTEGER1"},
    {0x2c8, Basic::logical16, "MPI_LOGICAL2"},
    {0x2c9, Basic::int16, "MPI_INTEGER2"},
    {0x2ca, Basic::float16, "MPI_REAL2"},
    {0x2d0, Basic::logical32, "MPI_LOGICAL4"},
    {0x2d1, Basic::int32, "MPI_INTEGER4"},
    {0x2d2, Basic::float32, "MPI_REAL4"},
    {0x2d3, Basic::complex16, "MPI_COMPLEX4"},
    {0x2d8, Basic::logical64, "MPI_LOGICAL8"},
    {0x2d9, Basic::int64, "MPI_INTEGER8"},
    {0x2da, Basic::float64, "MPI_REAL8"},
    {0x2db, Basic::complex32, "MPI_COMPLEX8"},
    {0x2e0, Basic::logical128, "MPI_LOGICAL16"},
    {0x2e1, Basic::int128, "MPI_INTEGER16"},
    {0x2e2, Basic::float128, "MPI_REAL16"},
    {0x2e3, Basic::complex64, "MPI_COMPLEX16"},
    {0x2eb, Basic::complex128, "MPI_COMPLEX32"},
};
static_assert(std::size(kRows) == kPredefinedCount);

/// The parts of a pair; for other types itself and none.
struct Parts {
  Basic first;
  Basic second = Basic::none;
};

constexpr Parts parts_of(Basic basic) noexcept {
  switch (basic) {
    case Basic::pair_float_int:
      return {Basic::float32, Basic::int32};
    case Basic::pair_double_int:
      return {Basic::float64, Basic::int32};
    case Basic::pair_long_int:
      return {Basic::signed_long, Basic::int32};
    case Basic::pair_int_int:
      return {Basic::int32, Basic::int32};
    case Basic::pair_short_int:
      return {Basic::int16, Basic::int32};
    case Basic::pair_extended_int:
      return {Basic::float_extended, Basic::int32};
    case Basic::pair_float_float:
      return {Basic::float32, Basic::float32};
    case Basic::pair_double_double:
      return {Basic::float64, Basic::float64};
    default:
      return {basic};
  }
}

constexpr std::uint8_t bytes_of(Basic basic) noexcept {
  return kBasicBytes[static_cast<std::uint32_t>(basic)];
}

/// What the processor wants, as in a C structure: complex numbers align as their parts.
constexpr std::uint32_t alignment_of(Basic basic) noexcept {
  switch (basic) {
    case Basic::complex16:
    case Basic::complex32:
    case Basic::complex64:
    case Basic::complex_extended:
    case Basic::complex128:
      return bytes_of(basic) / 2;
    default:
      return bytes_of(basic);
  }
}

constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

constexpr Loop block(std::int64_t displacement, std::uint64_t bytes, std::uint64_t start,
                     Basic basic) noexcept {
  return {displacement, 0, 1, bytes, start, 0, 0, basic};
}

/// Two loops a type: the parts of a pair that differ; the second is also, for a pair whose parts
/// lie side by side, not needed when they are of one type.
struct RowLoops {
  Loop elements[2];
  Loop copies[2];
  std::uint32_t element_loops;
  std::uint32_t copy_loops;
  std::int64_t second_at;  // Where the second part of a pair lies.
};

constexpr RowLoops loops_of(const Row& row) noexcept {
  const auto [first, second] = parts_of(row.basic);
  const std::uint64_t a = bytes_of(first);
  const std::uint64_t b = bytes_of(second);
  if (second == Basic::none || first == second) {
    const Loop all = block(0, a + b, 0, first);
    return {{all, {}}, {all, {}}, 1, 1, static_cast<std::int64_t>(a)};
  }
  const std::int64_t at = round_up(static_cast<std::int64_t>(a), alignment_of(second));
  const Loop parts[2] = {block(0, a, 0, first), block(at, b, a, second)};
  if (at == static_cast<std::int64_t>(a)) {
    return {{parts[0], parts[1]}, {block(0, a + b, 0, Basic::none), {}}, 2, 1, at};
  }
  return {{parts[0], parts[1]}, {parts[0], parts[1]}, 2, 2, at};
}

template <std::size_t... kIndex>
constexpr std::array<RowLoops, kPredefinedCount> all_loops(
    std::index_sequence<kIndex...> /*rows*/) noexcept {
  return {{loops_of(kRows[kIndex])...}};
}

constexpr std::array<RowLoops, kPredefinedCount> kLoops =
    all_loops(std::make_index_sequence<kPredefinedCount>());

constexpr Datatype::Predefined describe(std::size_t index) noexcept {
  const Row& row = kRows[index];
  const RowLoops& loops = kLoops[index];
  const auto [first, second] = parts_of(row.basic);
  const bool is_pair = second != Basic::none;
  const std::uint32_t alignment = std::max(alignment_of(first), alignment_of(second));
  const std::int64_t true_extent = is_pair ? loops.second_at + bytes_of(second) : bytes_of(first);
  return {row.name,
          row.basic,
          bytes_of(first) + std::int64_t{bytes_of(second)},
          round_up(true_extent, std::max(alignment, 1U)),
          true_extent,
          is_pair ? 2U : 1U,
          alignment,
          {loops.elements, loops.element_loops},
          {loops.copies, loops.copy_loops}};
}

template <std::size_t... kIndex>
constexpr std::array<Datatype, kPredefinedCount> all_types(
    std::index_sequence<kIndex...> /*rows*/) noexcept {
  return {{Datatype{describe(kIndex)}...}};
}

constexpr std::array<std::uint8_t, 512> index_of_values() noexcept {
  std::array<std::uint8_t, 512> index{};
  for (std::size_t row = 1; row < kPredefinedCount; ++row) {
    index[kRows[row].value & 0x1ff] = static_cast<std::uint8_t>(row);
  }
  return index;
}

constexpr std::array<std::uint8_t, 512> bytes_of_dense() noexcept {
  std::array<std::uint8_t, 512> bytes{};
  for (std::size_t row = 1; row < kPredefinedCount; ++row) {
    const Datatype::Predefined type = describe(row);
    bytes[kRows[row].value & 0x1ff] =
        static_cast<std::uint8_t>(type.bytes == type.extent ? type.bytes : 0);
  }
  return bytes;
}

constexpr std::uint8_t external_bytes(Basic basic) noexcept {
  switch (basic) {
    case Basic::wide_character:
      return 2;
    case Basic::signed_long:
    case Basic::unsigned_long:
      return 4;
    default:
      return bytes_of(basic);
  }
}

}  // namespace

constinit const std::array<std::uint8_t, 512> kPredefinedIndex = index_of_values();
constinit const std::array<std::uint8_t, 512> kDenseBytes = bytes_of_dense();
constinit const std::array<Datatype, kPredefinedCount> kPredefinedTypes =
    all_types(std::make_index_sequence<kPredefinedCount>());

BasicSizes sizes_of(Basic basic) noexcept {
  return {bytes_of(basic), external_bytes(basic)};
}

MPI_Datatype predefined_handle(std::size_t index) noexcept {
  return reinterpret_cast<MPI_Datatype>(std::uintptr_t{kRows[index].value});
}

}  // namespace sterna::mpi
