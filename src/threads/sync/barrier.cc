// The barrier: the last to arrive takes the whole list and wakes it without the lock.
#include "threads/sync/barrier.h"

#include "base/check.h"
#include "threads/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

constexpr int kLooks = 2000;
constexpr std::uint64_t kSleepNs = 50'000;

}  // namespace

Barrier::Barrier(std::uint32_t count, BarrierWait wait) noexcept : wait_{wait}, count_{count} {
  check(count > 0, "a barrier has at least 1 participant");
}

WaitNode* Barrier::complete() noexcept {
  // The next round may begin at once: those who wait are off the list.
  arrived_ = 0;
  // A: who yields until the round changes sees what the others did before they arrived.
  round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return waiters_.take_all();
}

bool Barrier::arrive_and_wait() noexcept {
  if (wait_ == BarrierWait::yield) {
    const Round round = arrive();
    wait(round);
    return round.is_last;
  }
  WaitNode node;
  WaitNode* others = nullptr;
  bool is_last = false;
  (void)wait_in(waiters_, lock_, node, [&]() noexcept {
    is_last = ++arrived_ >= count_;
    if (is_last) {
      others = complete();
    }
    return !is_last;
  });
  signal_chain(others);
  return is_last;
}

Barrier::Round Barrier::arrive() noexcept {
  WaitNode* others = nullptr;
  Round round{};
  {
    const SpinGuard guard{lock_};
    round = {.number = round_.load(std::memory_order_relaxed), .is_last = ++arrived_ >= count_};
    if (round.is_last) {
      others = complete();
    }
  }
  signal_chain(others);
  return round;
}

void Barrier::wait(Round round) noexcept {
  if (wait_ == BarrierWait::yield) {
    const Uncancellable uncancellable{self()};  // As in the other kind, and in POSIX.
    // A. When it takes long (the others compute, or are kernel threads without a processor), the
    // processor goes to somebody else.
    for (int looks = 0; round_.load(std::memory_order_acquire) == round.number; ++looks) {
      looks < kLooks ? yield() : sleep_for(kSleepNs);
    }
    return;
  }
  WaitNode node;
  (void)wait_in(waiters_, lock_, node,
                [&]() noexcept { return round_.load(std::memory_order_relaxed) == round.number; });
}

std::uint32_t Barrier::count() noexcept {
  const SpinGuard guard{lock_};
  return count_;
}

bool Barrier::add_count(std::int32_t change) noexcept {
  WaitNode* others = nullptr;
  {
    const SpinGuard guard{lock_};
    const std::int64_t count = std::int64_t{count_} + change;
    if (count <= 0 || count > INT32_MAX) {
      return false;
    }
    count_ = static_cast<std::uint32_t>(count);
    if (arrived_ >= count_) {
      others = complete();
    }
  }
  signal_chain(others);
  return true;
}

bool Barrier::is_used() noexcept {
  const SpinGuard guard{lock_};
  return arrived_ != 0;
}

}  // namespace sterna::threads
