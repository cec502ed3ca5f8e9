// The rare ways of the deque of seeds. Its argument is in the header.
#include "threads/seeds/seed_deque.h"

#include <algorithm>
#include <new>

#include <sys/syscall.h>

#include "base/check.h"
#include "base/syscall.h"

namespace sterna::threads {
namespace {
constexpr int kSpinsBeforeYield = 1000;
}  // namespace

SeedDeque::SeedDeque(bool is_asymmetric) noexcept : is_asymmetric_{is_asymmetric} {}

SeedDeque::~SeedDeque() {
  if (slots_ != first_slots_.data()) {
    delete[] slots_;
  }
}

void SeedDeque::lock() noexcept {
  // A thief holds it for some us; longer if the system has taken its processor.
  for (int spins = 0; !try_lock(); ++spins) {
    if (spins < kSpinsBeforeYield) {
      cpu_pause();
    } else {
      raw_system_call(SYS_sched_yield);
    }
  }
}

bool SeedDeque::make_room(std::int64_t bottom) noexcept {
  lock();
  const std::int64_t top = top_.load(std::memory_order_relaxed);
  const std::int64_t capacity = mask_ + 1;
  full_at_ = top + capacity;
  if (bottom >= full_at_) {
    if (Slot* const slots = new (std::nothrow) Slot[2 * static_cast<std::size_t>(capacity)]{};
        slots != nullptr) {
      const std::int64_t mask = 2 * capacity - 1;
      for (std::int64_t i = top; i < bottom; ++i) {
        slots[i & mask].store(slots_[i & mask_].load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
      }
      if (slots_ != first_slots_.data()) {
        delete[] slots_;
      }
      slots_ = slots;
      mask_ = mask;
      full_at_ = top + 2 * capacity;
    }
  }
  unlock();
  return bottom < full_at_;
}

bool SeedDeque::take_contended(std::int64_t newest) noexcept {
  bottom_.store(newest + 1, std::memory_order_release);
  lock();
  const bool is_mine = top_.load(std::memory_order_relaxed) <= newest;
  if (is_mine) {
    bottom_.store(newest, std::memory_order_release);
  }
  unlock();
  return is_mine;
}

Seed* SeedDeque::pop_newest() noexcept {
  const std::int64_t newest = bottom_.load(std::memory_order_relaxed) - 1;
  if (top_.load(std::memory_order_relaxed) > newest) {
    return nullptr;
  }
  Seed* const seed = slots_[newest & mask_].load(std::memory_order_relaxed);
  return take(newest) ? seed : nullptr;
}

bool SeedDeque::take_back(const Seed& seed) noexcept {
  const auto slot = [&](std::int64_t i) noexcept {
    return slots_[i & mask_].load(std::memory_order_relaxed);
  };
  const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
  const std::int64_t lowest = std::max(top_.load(std::memory_order_relaxed), bottom - kReach);
  std::int64_t at = bottom - 1;
  while (at >= lowest && slot(at) != &seed) {
    --at;
  }
  if (at < lowest) {
    return false;
  }
  // Those above it come off and go back. When a thief has one of them, it or another has ours.
  std::array<Seed*, kReach> above;
  std::size_t above_count = 0;
  bool is_mine = true;
  for (std::int64_t i = bottom - 1; i >= at && is_mine; --i) {
    Seed* const one = slot(i);
    is_mine = take(i);
    if (is_mine && i > at) {
      above[above_count++] = one;
    }
  }
  while (above_count > 0) {
    check(push(*above[--above_count]), "what was in the deque fits again");
  }
  return is_mine;
}

std::size_t SeedDeque::steal(std::span<Seed*> taken) noexcept {
  if (count() <= 0 || !try_lock()) {
    return 0;
  }
  const std::int64_t top = top_.load(std::memory_order_relaxed);
  const std::int64_t wanted = std::min((bottom_.load(std::memory_order_relaxed) - top + 1) / 2,
                                       static_cast<std::int64_t>(taken.size()));
  std::int64_t got = 0;
  if (wanted > 0) {
    top_.store(top + wanted, std::memory_order_seq_cst);
    if (is_asymmetric_) {
      process_barrier();
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    const std::int64_t bottom = bottom_.load(std::memory_order_acquire);  // A
    got = std::clamp(bottom - top, std::int64_t{0}, wanted);
    for (std::int64_t i = 0; i < got; ++i) {
      taken[static_cast<std::size_t>(i)] =
          slots_[(top + i) & mask_].load(std::memory_order_relaxed);
    }
    if (got != wanted) {
      top_.store(top + got, std::memory_order_release);
    }
  }
  unlock();
  return static_cast<std::size_t>(got);
}

}  // namespace sterna::threads
