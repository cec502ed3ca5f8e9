// A small seeded generator (xoshiro256**, Blackman and Vigna): equal seeds give equal runs.
#pragma once

#include <bit>
#include <cstdint>

#include "base/check.h"
#include "base/hash.h"

namespace sterna {

/// Not for secrets. Not thread-safe: one a thread, seeds derived with mix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      word = mix64(seed);
    }
  }

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Uniform in [0, bound), bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    check(bound > 0, "a random number is drawn from a range that is not empty");
    // Multiply-shift (Lemire); its bias is below bound / 2^64.
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1).
  constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  constexpr bool chance(double probability) noexcept { return unit() < probability; }

  // So that it drives std::shuffle and the standard distributions.
  using result_type = std::uint64_t;
  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }
  constexpr std::uint64_t operator()() noexcept { return next(); }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace sterna
