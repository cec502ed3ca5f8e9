// How kernel threads wait for a signal: they poll for a while, wake who might answer, let others
// have the processor, and sleep, one for the network and the others beside it.
#include <algorithm>

#include <sys/syscall.h>

#include "base/cpu.h"
#include "progress/completion.h"
#include "progress/impl.h"
#include "progress/progress.h"
#include "threads/futex.h"
#include "threads/waiter.h"

namespace sterna::progress {
namespace {

constexpr std::uint32_t kSpinTurns = 32;
constexpr std::uint32_t kRoundsOfTurn = 8;
// Who waits longer than that lets others have the processor between two looks, if there are any:
// on a processor of one's own that takes a quarter of a microsecond.
constexpr std::uint64_t kAloneNs = 4'000;

}  // namespace

void Progress::sleep_beside(threads::KernelWaiter& waiter, std::uint64_t deadline_ns) noexcept {
  Impl& impl = *impl_;
  {
    const SpinGuard guard{impl.aside_lock};
    impl.aside.push_back(&waiter);
  }
  // The word says "asleep" before we look for the sleeper, who takes his leave before he looks at
  // our word: either we see that he has gone, or he ends our sleep.
  if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kOnFutex)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (impl.has_sleeper.load(std::memory_order_seq_cst)) {
      threads::futex_wait(waiter.word, threads::KernelWaiter::kOnFutex, deadline_ns);
    }
  }
  threads::leave_sleep(waiter);
  {
    const SpinGuard guard{impl.aside_lock};
    std::erase(impl.aside, &waiter);
  }
}

bool Progress::spin_until(const Completion& completion) noexcept {
  if (options_.is_oversubscribed) {
    return false;
  }
  // A few microseconds. With a pause messages come a fifth sooner: it leaves the core to its other
  // half, and spares the loads that would be in vain when what is waited for comes.
  for (std::uint32_t turn = 0; turn < kSpinTurns && !completion.done(); ++turn) {
    if (!impl_->try_take()) {
      cpu_pause();
      continue;
    }
    // To take and give the turn each time costs as much as the look itself, and to ask all sources
    // several times as much: the answer is likely to come where the last event came from.
    (void)impl_->poll_all(threads::SchedulingPoint::idle);
    Source* const busiest = impl_->busiest;
    for (std::uint32_t round = 0; busiest != nullptr && round < kRoundsOfTurn && !completion.done();
         ++round) {
      const std::uint32_t count = busiest->poll();
      count != 0 ? add_relaxed(impl_->events, count) : cpu_pause();
    }
    impl_->give_back();
  }
  return completion.done();
}

int Progress::descriptor() const noexcept {
  return impl_->epoll.get();
}

bool Progress::wake_absent() noexcept {
  if (!impl_->try_take()) {
    return false;
  }
  bool has_woken = false;
  for (Source* const source : impl_->sources) {
    has_woken = source->wake_absent() || has_woken;
  }
  impl_->give_back();
  return has_woken;
}

threads::Wake Progress::await_signal(threads::KernelWaiter& waiter,
                                     std::uint64_t deadline_ns) noexcept {
  std::uint64_t begin = 0;
  bool was_beside = false;
  bool yields = false;
  // Who may have been woken to sleep for the network passes that on, also if its event came since.
  const auto leave = [&](threads::Wake wake) {
    const bool is_turn_free = was_beside && !impl_->has_sleeper.load();
    return is_turn_free ? (impl_->wake_aside(), wake) : wake;
  };
  for (std::uint32_t round = 0;; ++round) {
    const std::uint32_t events = poll(threads::SchedulingPoint::idle);
    if (threads::try_take_signal(waiter)) {
      return leave(threads::Wake::signalled);
    }
    if (!options_.is_oversubscribed && !yields && (round & 15) != 0) {
      cpu_pause();
      continue;  // The clock costs as much as a poll.
    }
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return leave(threads::Wake::timed_out);
    }
    if (events != 0 || begin == 0) {
      begin = now;
    }
    // Whoever progresses in the place of a program that computes may need this processor. Asked
    // less and less often.
    if (!options_.is_oversubscribed && round != 0 && (round & (round - 1)) == 0) {
      yields = wake_absent() || yields;
    }
    if (now - begin < options_.spin_ns) {
      if (options_.is_oversubscribed || yields || now - begin > kAloneNs) {
        raw_system_call(SYS_sched_yield);
      }
      continue;
    }
    if (!options_.is_oversubscribed) {
      (void)wake_absent();  // Later nobody does.
    }
    if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kInHook)) {
      const bool has_slept = sleep(deadline_ns, waiter.word, threads::KernelWaiter::kInHook);
      threads::leave_sleep(waiter);
      if (!has_slept) {
        sleep_beside(waiter, deadline_ns);
        was_beside = true;
      }
    }
  }
}

}  // namespace sterna::progress
