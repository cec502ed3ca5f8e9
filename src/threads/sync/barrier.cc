// The barrier: the last to arrive takes all who wait and lets them go without the lock. Its waits
// end in no other way (no deadline, no cancellation), so that user threads are listed by the link
// they have anyway: with hundreds of them, each line that is not touched counts.
#include "threads/sync/barrier.h"

#include "base/check.h"
#include "threads/control/cancel.h"
#include "threads/scheduler.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

// From so many on the last one to arrive goes on last, too: a crowd keeps its order from round to
// round, for one switch more. So each finds what those before it have done (semaphores of
// neighbours have their units). Of fewer the switch would be too dear.
constexpr std::uint32_t kCrowd = 64;
constexpr int kYieldsMax = 2000;
constexpr std::uint64_t kSleepNs = 50'000;

}  // namespace

Barrier::Barrier(std::uint32_t count, BarrierWait wait) noexcept : wait_{wait}, count_{count} {
  check(count > 0, "a barrier has at least 1 participant");
}

void Barrier::Leaving::go() const noexcept {
  if (sleepers != nullptr) {
    make_chain_runnable(sleepers);
  }
  signal_chain(kernel_threads);
}

Barrier::Leaving Barrier::complete() noexcept {
  // The next round may begin at once: those who wait are off the list.
  arrived_ = 0;
  // A: who yields until the round changes sees what the others did before they arrived.
  round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return {.sleepers = sleepers_.take_all(), .kernel_threads = kernel_waiters_.take_all()};
}

template <typename MustWait>
[[gnu::always_inline]] inline bool Barrier::sleep_if(MustWait must_wait) noexcept {
  if (Thread* const me = self(); me != nullptr) [[likely]] {
    return suspend(*me, [&]() noexcept {
      const SpinGuard guard{lock_};
      const bool must = must_wait();
      if (must) {
        sleepers_.push_back(*me);
      }
      return must;
    });
  }
  WaitNode node;
  bool has_waited = false;
  (void)wait_in(kernel_waiters_, lock_, node, [&]() noexcept { return has_waited = must_wait(); });
  return has_waited;
}

void Barrier::complete_and_go() noexcept {
  const bool is_crowd = count_ >= kCrowd;
  const Leaving others = complete();
  lock_.unlock();
  others.go();
  if (is_crowd) {
    yield();
  }
}

bool Barrier::arrive_and_wait_slow() noexcept {
  if (kind() == BarrierWait::yield) {
    const Round round = arrive();
    wait(round);
    return round.is_last;
  }
  WaitNode node;
  Leaving others;
  bool is_last = false;
  (void)wait_in(kernel_waiters_, lock_, node, [&]() noexcept {
    is_last = ++arrived_ >= count_;
    if (is_last) {
      others = complete();
    }
    return !is_last;
  });
  others.go();
  return is_last;
}

Barrier::Round Barrier::arrive() noexcept {
  Leaving others;
  Round round{};
  {
    const SpinGuard guard{lock_};
    round = {.number = round_.load(std::memory_order_relaxed), .is_last = ++arrived_ >= count_};
    if (round.is_last) {
      others = complete();
    }
  }
  others.go();
  return round;
}

void Barrier::wait(Round round) noexcept {
  if (kind() == BarrierWait::yield) {
    const Uncancellable uncancellable{self()};  // As in the other kind, and in POSIX.
    // A. When it takes long (the others compute, or are kernel threads without a processor), the
    // processor goes to somebody else. And until the last one has given lock_ back, which it took
    // before it changed the round: the barrier may be dropped when we return.
    for (int looks = 0; round_.load(std::memory_order_acquire) == round.number || lock_.is_locked();
         ++looks) {
      looks < kYieldsMax ? yield() : sleep_for(kSleepNs);
    }
    // Of the look at the lock: what is done with the memory next comes after what its holder did.
    std::atomic_thread_fence(std::memory_order_acquire);
    return;
  }
  (void)sleep_if([&]() noexcept { return round_.load(std::memory_order_relaxed) == round.number; });
}

bool Barrier::has_begun(std::uint32_t round) noexcept {
  const SpinGuard guard{lock_};
  // Rounds are counted without end: those of the last half of all numbers are over.
  const auto ahead =
      static_cast<std::int32_t>(round - round_.load(std::memory_order_relaxed));
  return ahead < 0 || (ahead == 0 && arrived_ != 0);
}

std::uint32_t Barrier::count() noexcept {
  const SpinGuard guard{lock_};
  return count_;
}

bool Barrier::add_count(std::int32_t change) noexcept {
  Leaving others;
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
  others.go();
  return true;
}

bool Barrier::is_used() noexcept {
  const SpinGuard guard{lock_};
  return arrived_ != 0;
}

}  // namespace sterna::threads
