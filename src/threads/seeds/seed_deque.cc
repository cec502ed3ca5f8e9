// The rare ways of the deque of seeds. Its argument is in the header.
#include "threads/seeds/seed_deque.h"

#include <algorithm>
#include <new>

#include "base/backoff.h"
#include "base/check.h"

namespace sterna::threads {
namespace {
}  // namespace

SeedDeque::SeedDeque(bool is_asymmetric) noexcept : is_asymmetric_{is_asymmetric} {}

SeedDeque::~SeedDeque() {
  if (slots_ != first_slots_.data()) {
    delete[] slots_;
  }
}

void SeedDeque::lock() noexcept {
  // A thief holds it for some us; longer if the system has taken its processor.
  Backoff backoff;
  while (!try_lock()) {
    backoff.pause();
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
  return take(newest) ? slot(newest) : nullptr;
}

bool SeedDeque::take_back(const Seed& seed) noexcept {
  const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
  const std::int64_t lowest = std::max(top_.load(std::memory_order_relaxed), bottom - kReach);
  std::int64_t at = bottom - 1;
  while (at >= lowest && slot(at) != &seed) {
    --at;
  }
  if (at < lowest) {
    return false;
  }
  // Those above it come off and go back. A thief may move it up meanwhile, and have it.
  std::array<Seed*, kReach> above;
  std::size_t above_count = 0;
  bool is_mine = false;
  for (std::int64_t i = bottom - 1; i >= at && !is_mine && take(i); --i) {
    Seed* const one = slot(i);
    is_mine = one == &seed;
    if (!is_mine) {
      above[above_count++] = one;
    }
  }
  while (above_count > 0) {
    check(push(*above[--above_count]), "what was in the deque fits again");
  }
  return is_mine;
}

bool SeedDeque::is_empty() noexcept {
  lock();
  const bool is = count() <= 0;
  unlock();
  return is;
}

SeedDeque::Claim SeedDeque::begin_claim(std::size_t most) noexcept {
  if (count() <= 0 || !try_lock()) {
    return {};
  }
  const std::int64_t there =
      bottom_.load(std::memory_order_relaxed) - top_.load(std::memory_order_relaxed);
  return claim_oldest(most >= kClaimMax
                          ? std::min(there, static_cast<std::int64_t>(kClaimMax))
                          : std::min((there + 1) / 2, static_cast<std::int64_t>(most)));
}

SeedDeque::Claim SeedDeque::claim_oldest(std::int64_t wanted) noexcept {
  const std::int64_t top = top_.load(std::memory_order_relaxed);
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
    if (got != wanted) {
      top_.store(top + got, std::memory_order_release);
    }
  }
  if (got == 0) {
    unlock();
  }
  return {.top = top, .count = got};
}

bool SeedDeque::take_out(const Seed& seed) noexcept {
  lock();
  const std::int64_t top = top_.load(std::memory_order_relaxed);
  const std::int64_t bottom =
      std::min(bottom_.load(std::memory_order_acquire), top + static_cast<std::int64_t>(kClaimMax));
  std::int64_t at = top;
  while (at < bottom && slot(at) != &seed) {
    ++at;
  }
  if (at >= bottom) {
    unlock();
    return false;
  }
  const Claim claim = claim_oldest(at - top + 1);
  // Until then its owner may have taken it, and put another one there.
  const bool is_mine = claim.count == at - top + 1 && slot(at) == &seed;
  if (claim.count != 0) {
    end_claim(claim, is_mine ? std::uint64_t{1} << (at - top) : 0, is_mine ? 1 : 0);
  }
  return is_mine;
}

void SeedDeque::end_claim(const Claim& claim, std::uint64_t taken_bits,
                          std::size_t taken) noexcept {
  if (taken != 0 && static_cast<std::int64_t>(taken) != claim.count) {
    std::int64_t to = claim.count - 1;
    for (std::int64_t i = claim.count - 1; i >= 0; --i) {
      if ((taken_bits >> i & 1) == 0) {
        slots_[(claim.top + to--) & mask_].store(slot(claim.top + i), std::memory_order_relaxed);
      }
    }
  }
  top_.store(claim.top + static_cast<std::int64_t>(taken), std::memory_order_release);  // C
  unlock();
}

}  // namespace sterna::threads
