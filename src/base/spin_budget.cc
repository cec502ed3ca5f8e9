// See spin_budget.h.
#include "base/spin_budget.h"

#include <algorithm>

#include "base/check.h"

namespace sterna {
namespace {

constexpr std::uint32_t kLearnEvery = 8;  // Waits that are counted.
constexpr std::uint32_t kTotalMax = 64;   // Then all count half: what is old is forgotten.

}  // namespace

void SpinBudget::open(std::uint64_t price) noexcept {
  check(price <= kPriceMax, "a sleep costs less than three days");
  price_.store(price, std::memory_order_relaxed);
  learnt_.store(price, std::memory_order_relaxed);
}

void SpinBudget::change_price(std::uint64_t price) noexcept {
  check(price != 0, "whoever sleeps pays for it");
  if (is_counting_.exchange(true, std::memory_order_acquire)) {  // A
    return;
  }
  counts_ = {};
  total_ = 0;
  open(price);
  is_counting_.store(false, std::memory_order_release);  // A
}

std::uint64_t SpinBudget::begin() noexcept {
  const std::uint32_t number = wait_count_.load(std::memory_order_relaxed);
  wait_count_.store(number + 1, std::memory_order_relaxed);
  // Scattered by a multiplication (Knuth, 6.4): programs come round every so many waits, and else
  // the same one might be looked at each time. Of any few hundred it is one in kExploreEvery.
  const bool explores = number * 0x9E3779B1U < ~0U / kExploreEvery;
  return explores ? price() : learnt();
}

void SpinBudget::end(std::uint64_t length) noexcept {
  const std::uint64_t most = price();
  if (most == 0 || is_counting_.exchange(true, std::memory_order_acquire)) {  // A
    return;
  }
  const std::size_t step = length >= most ? kSteps : length * kSteps / most;
  ++counts_[step];
  if (++total_ % kLearnEvery == 0) {
    learn();
  }
  is_counting_.store(false, std::memory_order_release);  // A
}

/// The sums are in steps, times the number of waits.
void SpinBudget::learn() noexcept {
  std::uint64_t looked = 0;  // By those that have ended until then.
  std::uint32_t left = total_;
  std::uint64_t best_cost = total_ * kSteps;  // Of s = 0: all sleep.
  std::size_t best = 0;
  for (std::size_t step = 0; step < kSteps; ++step) {
    looked += std::uint64_t{counts_[step]} * (step + 1);
    left -= counts_[step];
    const std::uint64_t cost = looked + std::uint64_t{left} * (step + 1 + kSteps);
    if (cost < best_cost) {
      best_cost = cost;
      best = step + 1;
    }
  }
  // Rounded up: a price of few units has less than a unit a step.
  learnt_.store((best * price() + kSteps - 1) / kSteps, std::memory_order_relaxed);
  if (total_ >= kTotalMax) {
    total_ = 0;
    for (std::uint16_t& count : counts_) {
      count = static_cast<std::uint16_t>(count / 2);
      total_ += count;
    }
  }
}

}  // namespace sterna
