// The basic types: what the elements of datatypes are to a processor, whatever their names in C,
// C++ and Fortran. Reductions and external32 are chosen by them.
#pragma once

#include <cstdint>

namespace sterna::mpi {

enum class Basic : std::uint8_t {
  none,       // Mixed, or of no type.
  byte,       // Bits without a meaning: MPI_BYTE.
  packed,     // MPI_PACKED.
  character,  // Characters: no arithmetic.
  wide_character,
  int8,
  int16,
  int32,
  int64,
  int128,
  uint8,
  uint16,
  uint32,
  uint64,
  signed_long,  // long of C, which is 8 bytes here but 4 in external32: apart from int64 for that.
  unsigned_long,
  float16,
  float32,
  float64,
  float_extended,  // long double.
  float128,
  complex16,  // Two of float16, and so on.
  complex32,
  complex64,
  complex_extended,
  complex128,
  bool8,     // bool of C and C++.
  logical8,  // LOGICAL of Fortran, by size in bits: zero is false.
  logical16,
  logical32,
  logical64,
  logical128,
  // MPI's integers: also legal for bit operations and arithmetic.
  address,
  offset,
  count,
  // Pairs for MPI_MINLOC and MPI_MAXLOC: value and index. In plans they appear as their parts.
  pair_float_int,
  pair_double_int,
  pair_long_int,
  pair_int_int,
  pair_short_int,
  pair_extended_int,
  pair_float_float,
  pair_double_double,
};

inline constexpr std::uint32_t kBasicCount =
    static_cast<std::uint32_t>(Basic::pair_double_double) + 1;

/// Bytes in memory (for pairs: of the data), and in the format external32.
struct BasicSizes {
  std::uint8_t bytes;
  std::uint8_t external_bytes;
};
[[nodiscard]] BasicSizes sizes_of(Basic basic) noexcept;

}  // namespace sterna::mpi
