// How long to look for something before one sleeps, learnt from how long it lately took to come.
//
// Of all fixed times, that time s is the best which makes the mean of
//     min(wait, s) + (wait > s ? price of a sleep : 0)
// the least, over the waits there were (Karlin, Li, Manasse, Owicki, "Empirical studies of
// competitive spinning for a shared-memory multiprocessor", 1991, 3). No s above the price can be
// worth it, so the price is the bound, too: nothing is lost against it by more than a factor of
// two, whatever comes. Where all waits are longer s is 0, and no time is spent in vain.
//
// A wait that ended in a sleep is known to be longer than s, but is measured with the wake-up, or
// not at all: so one in kExploreEvery looks for the whole price, and what has become short is found
// out.
//
// The unit is the user's: nanoseconds, cycles, turns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sterna {

class SpinBudget {
 public:
  static constexpr std::uint32_t kExploreEvery = 32;

  static constexpr std::uint64_t kPriceMax = std::uint64_t{1} << 48;

  /// `price`: of a sleep and the wake-up; 0: never look. At most kPriceMax.
  explicit SpinBudget(std::uint64_t price = 0) noexcept { open(price); }
  /// Before it is used.
  void open(std::uint64_t price) noexcept;
  /// The price was found to be another one, not 0: what was learnt is learnt again. From anywhere;
  /// nothing happens while a wait is being counted.
  void change_price(std::uint64_t price) noexcept;

  /// A wait begins: how long it shall look. From anywhere.
  [[nodiscard]] std::uint64_t begin() noexcept;
  /// It has ended after `length`, looked or slept. From anywhere: of two at a time one is not
  /// counted.
  void end(std::uint64_t length) noexcept;
  /// The same where nothing is known of a wait that looked in vain: only those count whose `limit`
  /// was the price. To count the short ones of the others, but not the long ones, would be wrong.
  void end_if_all_is_known(std::uint64_t length, std::uint64_t limit) noexcept {
    if (limit >= price()) {
      end(length);
    }
  }

  [[nodiscard]] std::uint64_t price() const noexcept {
    return price_.load(std::memory_order_relaxed);
  }
  /// What was learnt. Relaxed, as begin(): a number for a decision that may be wrong.
  [[nodiscard]] std::uint64_t learnt() const noexcept {
    return learnt_.load(std::memory_order_relaxed);
  }

 private:
  // Lengths up to the price, evenly; the last place is for all that are longer.
  static constexpr std::size_t kSteps = 32;

  void learn() noexcept;

  std::atomic<std::uint64_t> price_{0};  // Relaxed; written after open() by who counts.
  std::atomic<std::uint64_t> learnt_{0};
  std::atomic<std::uint32_t> wait_count_{0};  // Relaxed: which one explores does not matter.
  std::atomic<bool> is_counting_{false};      // A: guard of the next ones.
  std::array<std::uint16_t, kSteps + 1> counts_{};
  std::uint32_t total_ = 0;
};

}  // namespace sterna
