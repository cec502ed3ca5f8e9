// Numbers that C++ lacks, as far as reductions need them: half precision, complex, value and index.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace sterna::mpi {

using Int128 = __int128;
using Quad = float __attribute__((mode(TF)));  // IEEE binary128.

/// IEEE binary16, by way of float: exact in, rounded to nearest even out.
struct Half {
  std::uint16_t bits;

  [[nodiscard]] float value() const noexcept {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00) {  // Infinity, or not a number.
      return std::bit_cast<float>(sign | 0x7f80'0000U | (magnitude & 0x3ffU) << 13);
    }
    // A float whose exponent is too small by the difference of the biases; the product mends it,
    // also for subnormal halves.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
  }

  [[nodiscard]] static Half of(float value) noexcept {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(word >> 16 & 0x8000U);
    const std::uint32_t magnitude = word & 0x7fff'ffffU;
    if (magnitude > 0x7f80'0000U) {
      return {static_cast<std::uint16_t>(sign | 0x7e00U)};
    }
    if (magnitude >= 0x477f'f000U) {  // Rounds to 65536 or more.
      return {static_cast<std::uint16_t>(sign | 0x7c00U)};
    }
    if (magnitude < 0x3880'0000U) {  // Subnormal: adding 0.5 rounds at the right bit.
      const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
      return {static_cast<std::uint16_t>(
          sign | (std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(0.5F)))};
    }
    const std::uint32_t odd = magnitude >> 13 & 1U;
    const std::uint32_t rounded = magnitude - 0x3800'0000U + 0xfffU + odd;
    return {static_cast<std::uint16_t>(sign | rounded >> 13)};
  }

  friend Half operator+(Half a, Half b) noexcept { return of(a.value() + b.value()); }
  friend Half operator-(Half a, Half b) noexcept { return of(a.value() - b.value()); }
  friend Half operator*(Half a, Half b) noexcept { return of(a.value() * b.value()); }
  friend bool operator<(Half a, Half b) noexcept { return a.value() < b.value(); }
};

/// Without the rescue of infinities that C's Annex G wants: the loops stay plain.
template <typename Part>
struct Complex {
  Part real;
  Part imaginary;

  friend Complex operator+(Complex a, Complex b) noexcept {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
  friend Complex operator*(Complex a, Complex b) noexcept {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

/// A type to compute in without overflow that C++ leaves undefined: integers wrap.
template <typename Number>
struct Wrapping {
  using Type = Number;
};
template <typename Number>
  requires std::is_integral_v<Number>
struct Wrapping<Number> {
  using Type =
      std::conditional_t<(sizeof(Number) < 4), std::uint32_t, std::make_unsigned_t<Number>>;
};
template <>
struct Wrapping<Int128> {
  using Type = unsigned __int128;
};

}  // namespace sterna::mpi
