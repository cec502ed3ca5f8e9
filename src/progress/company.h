// Whether who waits has the process that it waits for on its own processor, as far as its yields
// tell: to look on, then, only delays the answer. Where no processor is idle both stay there: a
// third process computes on another one (home.h). A message of 8 B took 25 us then, most of it the
// looks before each yield, and takes 3.
//
// One who computes on this processor is no company: it keeps the processor for a slice, a
// millisecond and more, and the answer may well come from elsewhere before that.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::progress {

/// Not thread-safe: of the one caller of a process.
class Company {
 public:
  void has_yielded(std::uint64_t ns) noexcept {
    const bool is_a_turn = ns >= kTurnMinNs && ns <= kTurnMaxNs;
    turns_ = is_a_turn ? std::min(turns_ + 1, kTurnsUntilSure) : 0;
    is_here_ = turns_ == kTurnsUntilSure;
  }
  /// Lives as long as this, for who asks often.
  [[nodiscard]] const bool& is_here() const noexcept { return is_here_; }

 private:
  static constexpr std::uint32_t kTurnsUntilSure = 8;  // In a row.
  static constexpr std::uint64_t kTurnMinNs = 1'000;   // Alone a yield takes a quarter of that.
  static constexpr std::uint64_t kTurnMaxNs = 200'000;

  std::uint32_t turns_ = 0;
  bool is_here_ = false;
};

}  // namespace sterna::progress
