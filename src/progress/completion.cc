// Waiting for completions. A waiter publishes itself in the words it waits for; complete() takes it
// from there, and from then on owes it exactly one signal. A waiter that leaves early withdraws;
// where it comes too late, it awaits that signal: so nobody ever signals a waiter that is gone.
#include "progress/completion.h"

#include <algorithm>

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "progress/progress.h"
#include "threads/direct.h"
#include "threads/scheduler.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::progress {
namespace {

using threads::Wake;

constexpr std::uint32_t kFirstTurns = 12;  // A few microseconds.

/// One wait of the caller, user thread or kernel thread.
class Waiting {
 public:
  explicit Waiting(Progress& progress) noexcept : progress_{progress}, thread_{threads::self()} {
    kernel_.hook = &progress;
  }

  [[nodiscard]] bool is_kernel_thread() const noexcept { return thread_ == nullptr; }
  [[nodiscard]] threads::Waiter waiter() noexcept {
    return thread_ != nullptr ? threads::Waiter{*thread_} : threads::Waiter{kernel_};
  }
  /// Switches.
  Wake await(const threads::WaitOptions& options) noexcept {
    return thread_ != nullptr ? threads::await_signal(options)
                              : progress_.await_signal(kernel_, options.deadline_ns);
  }

 private:
  Progress& progress_;
  threads::Thread* const thread_;
  threads::KernelWaiter kernel_;
};

// More processes than processors: what is waited for may need this processor, and a worker without
// threads sleeps at once. As a kernel thread does, it gives the processor away a few times first,
// if that has helped lately: who sleeps has to be woken, which takes the other side a system call
// and us a place in the queue of those that wake up.
bool yields_until_done(const Completion& completion, Progress& progress, const threads::Thread& me,
                       std::uint64_t deadline_ns) noexcept {
  SpinBudget& budget = progress.yields();
  const std::uint64_t limit = budget.begin();
  std::uint64_t yields = 0;
  while (yields < limit && !completion.done()) {
    if (!threads::is_alone(me) || (deadline_ns != kNever && now_ns() >= deadline_ns)) {
      return completion.done();  // Which says nothing of the answer.
    }
    if (progress.poll(threads::SchedulingPoint::enter) == 0) {
      raw_system_call(SYS_sched_yield);
      ++yields;
    }
  }
  budget.end_if_all_is_known(completion.done() ? yields : budget.price(), limit);
  return completion.done();
}

// Alone on its worker, a thread that left would make the worker poll: what comes from another node
// or worker finds the thread still here, which saves two switches and the way through a queue. No
// longer than those and the search for other work take, so that who waits in vain loses little.
// Mostly it looks where the last event came from (Progress::poll_and_look).
bool spins_until_done(const Completion& completion, Progress& progress, const threads::Thread& me,
                      std::uint64_t deadline_ns) noexcept {
  // Of what has an entity others may wait in queues that are not the worker's.
  if (me.entity != nullptr) {
    return completion.done();
  }
  if (progress.options().is_oversubscribed) {
    return yields_until_done(completion, progress, me, deadline_ns);
  }
  for (std::uint32_t turn = 0; turn < kFirstTurns && !completion.done() && threads::is_alone(me);
       ++turn) {
    (void)progress.poll_and_look();
  }
  return completion.done();
}

}  // namespace

bool Completion::publish(threads::Waiter waiter) noexcept {
  std::uintptr_t expected = 0;
  // Release: complete() reads the waiter's record. Acquire on failure (A): it is done.
  const bool is_published = word_.compare_exchange_strong(
      expected, waiter.bits(), std::memory_order_acq_rel, std::memory_order_acquire);
  check(is_published || expected == kDone, "a completion has one waiter at a time");
  return is_published;
}

bool Completion::withdraw(threads::Waiter waiter) noexcept {
  std::uintptr_t expected = waiter.bits();
  return word_.compare_exchange_strong(expected, 0, std::memory_order_acquire,
                                       std::memory_order_acquire);  // A
}

Wake Completion::wait_for(Progress& progress, const threads::WaitOptions& options) noexcept {
  // With others to run here the network can wait until every n-th switch, which polls it.
  const threads::Thread* const me = threads::self();
  if (!done()) {
    progress.waits(me == nullptr || threads::is_alone(*me));
    if (me == nullptr || !threads::is_another_ready(*me)) {
      (void)progress.poll(threads::SchedulingPoint::enter);
    }
  }
  if (done() || (me != nullptr && spins_until_done(*this, progress, *me, options.deadline_ns))) {
    return Wake::signalled;
  }
  if (me != nullptr && options.deadline_ns == kNever && !options.is_interruptible &&
      !options.is_cancellable) {
    // Nothing else ends this wait, so it needs no signal: complete() makes runnable whom it has
    // taken. That is three changes of the thread's word fewer, locked instructions all: to wait, to
    // wake, to go on. Each would also wait for the stores before it, those of a message that was
    // just sent. It publishes itself under the lock of its worker, which is given back after the
    // switch, so nobody runs it before its registers are saved (threads/scheduler.h).
    threads::Thread& self = *threads::self();
    (void)threads::suspend(
        self, [&]() noexcept { return publish(threads::Waiter::suspended(self)); });
    return Wake::signalled;
  }
  Waiting waiting{progress};
  if (waiting.is_kernel_thread() && progress.spin_until(*this)) {
    return Wake::signalled;
  }
  if (!publish(waiting.waiter())) {
    return Wake::signalled;
  }
  const Wake wake = waiting.await(options);
  if (wake == Wake::signalled || withdraw(waiting.waiter())) {
    return wake;
  }
  return waiting.await({});  // complete() has taken us.
}

std::size_t Completion::wait_any(Progress& progress, std::span<Completion* const> completions,
                                 const threads::WaitOptions& options) noexcept {
  const auto first_done = [&]() noexcept {
    std::size_t i = 0;
    while (i < completions.size() && (completions[i] == nullptr || !completions[i]->done())) {
      ++i;
    }
    return i;
  };
  if (first_done() == completions.size()) {
    progress.waits(threads::is_caller_alone());
    (void)progress.poll(threads::SchedulingPoint::enter);
  }
  if (const std::size_t done = first_done(); done != completions.size()) {
    return done;
  }
  Waiting waiting{progress};
  std::size_t published_end = 0;
  bool is_done = false;
  while (published_end < completions.size() && !is_done) {
    Completion* const completion = completions[published_end];
    is_done = completion != nullptr && !completion->publish(waiting.waiter());
    published_end += is_done ? 0 : 1;
  }
  std::size_t signals_taken = 0;
  if (!is_done && waiting.await(options) == Wake::signalled) {
    signals_taken = 1;
  }
  std::size_t signals_owed = 0;
  for (std::size_t i = 0; i < published_end; ++i) {
    if (completions[i] != nullptr && !completions[i]->withdraw(waiting.waiter())) {
      ++signals_owed;
    }
  }
  while (signals_taken < signals_owed) {
    (void)waiting.await({});
    ++signals_taken;
  }
  return first_done();
}

}  // namespace sterna::progress
