// Yielding, waking, and what happens now and then at a switch.
#include "threads/scheduler.h"

#include <algorithm>
#include <utility>

#include <sys/syscall.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/thread_pointer.h"
#include "threads/carriers/border.h"
#include "threads/carriers/locals.h"
#include "threads/control/measure.h"
#include "threads/control/switch_hook.h"
#include "threads/flags.h"
#include "threads/observation/traced.h"
#include "threads/user_calls.h"

namespace sterna::threads {
namespace {

void do_nothing(Thread&, void*) noexcept {}

void ready_managed(Thread& thread, void* worker) noexcept {
  Worker& home = *static_cast<Worker*>(worker);
  home.team.options.dispatch->ready(thread, &home);
}

/// Until the former processor of a managed thread has saved its registers.
void wait_until_saved(const Thread& thread) noexcept {
  Backoff backoff;
  while (thread.on_processor.load(std::memory_order_acquire) != 0) {  // C
    backoff.pause();
  }
}

}  // namespace

Thread& prepare_slow_switch(Worker& worker, Thread& from, Thread& to) noexcept {
  if ((from.flags & ThreadFlag::hooked) != 0) {
    run_hooks_before(from);
  }
  if (((from.flags | to.flags) & ThreadFlag::accounted) != 0) {
    const std::uint64_t now = cycles();
    worker.meter.change(from, to, now);
    if ((to.flags & ThreadFlag::measured) != 0) {
      end_measuring_if_over(to, now);
    }
  }
  if ((to.flags & ThreadFlag::managed) != 0) {
    wait_until_saved(to);
    to.on_processor.store(1, std::memory_order_relaxed);
  }
  if ((from.flags & ThreadFlag::managed) != 0 && worker.post == nullptr) {
    worker.post = do_nothing;
    worker.post_thread = &from;
  }
  if (((from.flags | to.flags) & ThreadFlag::traced) != 0) {
    trace_runs(worker, from, to);
  }
  Thread* next = &to;
  if ((to.flags & ThreadFlag::kernel_bound) != 0) {
    worker.resumed = &to;
    next = worker.idle;  // Its hooks run where it waits, if it has switched at all.
  } else if ((to.flags & ThreadFlag::hooked) != 0) {
    worker.hooked = &to;
    if (worker.post == nullptr) {
      worker.post = do_nothing;
      worker.post_thread = &from;
    }
  }
  if (((from.flags | next->flags) & ThreadFlag::own_locals) != 0 && !kSanitized) {
    set_thread_pointer(pointer_for(worker, *next));  // Else the switch itself does.
  }
  return *next;
}

void run_post(Worker& worker) noexcept {
  const PostFunction function = worker.post;
  Thread& thread = *worker.post_thread;
  void* const argument = worker.post_argument;
  const Thread* const hooked = std::exchange(worker.hooked, nullptr);  // We are on its stack.
  const bool is_managed = (thread.flags & ThreadFlag::managed) != 0;
  worker.post = nullptr;
  worker.lock.unlock();
  if (is_managed) {
    thread.on_processor.store(0, std::memory_order_release);  // C
  }
  if (function != do_nothing) {  // Else the thread may be anywhere from here on.
    function(thread, argument);
  }
  if (hooked != nullptr) {
    run_hooks_after(*hooked);
  }
}

void send_home(Worker& worker, Thread& thread) noexcept {
  worker.inbox.push(thread);
  (void)worker.wake();
}

namespace {

/// `thread` is at home on `home`, the caller's worker, and waits in private queues.
[[gnu::always_inline]] inline void make_runnable_here(Worker& home, Thread& thread) noexcept {
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  home.lock.lock();
  home.queue.push_back(thread);
  home.lock.unlock();
  TeamState& team = home.team;
  // One thread waits for us to leave, which is usual when two talk; from two on, others may help.
  if (team.sleeper_count.load(std::memory_order_relaxed) != 0 && home.queue.count() > 1)
      [[unlikely]] {
    team.wake_idle(0, static_cast<std::uint32_t>(team.workers.size()));
  }
}

}  // namespace

void make_runnable(Thread& thread) noexcept {
  STERNA_PROBE1(thread_wake, &thread);
  // Relaxed: what the thread wrote before it was published reached us with the publication.
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  const std::uint32_t flags = flags_of(thread);  // It may still be switching away.
  if ((flags & (ThreadFlag::managed | ThreadFlag::traced)) != 0) [[unlikely]] {
    if ((flags & ThreadFlag::traced) != 0) {
      trace_wakes(thread);
    }
    if ((flags & ThreadFlag::managed) != 0) {
      thread.activity.store(Activity::ready, std::memory_order_relaxed);
      home->team.options.dispatch->ready(thread, home);
      return;
    }
  }
  if (home != current_worker()) {
    send_home(*home, thread);
    return;
  }
  make_runnable_here(*home, thread);
}

void make_runnable_at(Worker& home, Thread& thread) noexcept {
  STERNA_PROBE1(thread_wake, &thread);
  if (&home == current_worker()) {
    make_runnable_here(home, thread);
  } else {
    send_home(home, thread);
  }
}

namespace {

/// Threads at home on one other worker, newest first, for one push into its inbox.
struct ForeignChain {
  Worker* home = nullptr;
  Thread* newest = nullptr;
  Thread* oldest = nullptr;

  void flush() noexcept {
    if (home != nullptr) {
      home->inbox.push_chain(*newest, *oldest);
      (void)home->wake();
    }
    *this = {};
  }
  void add(Worker& its_home, Thread& thread) noexcept {
    if (home != &its_home) {
      flush();
      home = &its_home;
      oldest = &thread;
    }
    thread.next = newest;
    newest = &thread;
  }
};

void append_here(Worker& here, Thread& first, Thread& last, std::uint32_t count) noexcept {
  here.lock.lock();
  here.queue.append_chain(first, last, count);
  here.lock.unlock();
  // One waits for us to leave; for each of the others one may get up.
  TeamState& team = here.team;
  const std::uint32_t present = here.queue.count();
  const std::uint32_t others = std::min(count, present > 0 ? present - 1 : 0);
  const std::uint32_t sleepers = team.sleeper_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = std::min(others, sleepers); i > 0; --i) {
    team.wake_idle(0, static_cast<std::uint32_t>(team.workers.size()));
  }
}

}  // namespace

void make_chain_runnable(Thread* first) noexcept {
  Worker* const here = current_worker();
  ForeignChain foreign;
  Thread* own_first = nullptr;
  Thread* own_last = nullptr;
  std::uint32_t own_count = 0;
  for (Thread* thread = first; thread != nullptr;) {
    Thread* const next = thread->next;
    Worker* const home = thread->worker.load(std::memory_order_relaxed);
    if ((flags_of(*thread) & (ThreadFlag::managed | ThreadFlag::traced)) != 0 ||
        thread->priority.load(std::memory_order_relaxed) != kPriorityNormal) [[unlikely]] {
      make_runnable(*thread);
    } else {
      STERNA_PROBE1(thread_wake, thread);
      thread->activity.store(Activity::ready, std::memory_order_relaxed);
      if (home == here) {
        (own_last == nullptr ? own_first : own_last->next) = thread;
        own_last = thread;
        ++own_count;
      } else {
        foreign.add(*home, *thread);
      }
    }
    thread = next;
  }
  foreign.flush();
  if (own_first != nullptr) {
    append_here(*here, *own_first, *own_last, own_count);
  }
}

namespace {

/// worker.lock is held.
void yield_managed(Worker& worker, Thread& me) noexcept {
  Thread* next = worker.queue.pop_front();
  const bool is_closed = worker.queue.is_closed_to(me);
  if (next == nullptr && !is_closed) {
    // By way of the queue, which lets go who is held.
    if (Thread* const found = worker.team.options.dispatch->next(worker, &me); found != nullptr) {
      worker.queue.push_back(*found);
      next = worker.queue.pop_front();
    }
  }
  if (next == nullptr) {
    if (me.hold.load(std::memory_order_relaxed) == Hold::none && !is_closed &&
        !worker.is_disabled.load(std::memory_order_relaxed)) {
      worker.lock.unlock();
      return;
    }
    next = worker.idle;  // Our place in the queues is where we are let go.
  }
  worker.post = ready_managed;
  worker.post_thread = &me;
  worker.post_argument = &worker;
  switch_contexts(worker, me, *next);
}

}  // namespace

[[gnu::noinline]] void yield_locked(Worker& worker, Thread& me) noexcept {
  if (!worker.inbox.looks_empty()) [[unlikely]] {
    worker.inbox.drain_to(worker.queue);
  }
  if ((me.flags & ThreadFlag::managed) != 0) {
    yield_managed(worker, me);
    return;
  }
  Thread* const next = worker.queue.rotate(me);
  if (next == &me) {
    if (!worker.is_disabled.load(std::memory_order_relaxed)) [[likely]] {
      worker.lock.unlock();
      return;
    }
    worker.queue.push_back(me);  // From the worker's own context it goes to another one.
    switch_contexts(worker, me, *worker.idle);
    return;
  }
  switch_contexts(worker, me, next != nullptr ? *next : *worker.idle);
}

void yield() noexcept {
  Thread* const me = self();
  if (me == nullptr) {
    raw_system_call(SYS_sched_yield);
    return;
  }
  (void)yield_on(*me->worker.load(std::memory_order_relaxed), *me);
}

void Worker::slow_point() noexcept {
  const TeamOptions& options = team.options;
  countdown.store(options.switch_poll_interval != 0 ? options.switch_poll_interval : 1024,
                  std::memory_order_relaxed);
  if (timers.next_ns() != kNever) {
    timers.fire(team.now_ns());
  }
  if (is_disabled.load(std::memory_order_relaxed)) [[unlikely]] {
    (void)hand_over();
    countdown.store(1, std::memory_order_relaxed);  // At every switch.
    return;
  }
  const bool is_closed = team.is_closed.load(std::memory_order_relaxed);
  if (seeds.count() > 0 && !is_closed) {
    // While other threads keep the worker busy, who waits for seeds must not wait for ever.
    (void)germinate();
  }
  if (options.idle_hook != nullptr && options.switch_poll_interval != 0) {
    (void)options.idle_hook->poll(SchedulingPoint::switching);
  }
  if (options.dispatch == nullptr || is_closed) {
    return;
  }
  options.dispatch->poll();
  if (options.dispatch->has_work(*this)) {
    // Private threads that switch among themselves must not starve those in shared queues.
    lock.lock();
    if (Thread* const thread = options.dispatch->next(*this, nullptr); thread != nullptr) {
      queue.push_back(*thread);
    }
    lock.unlock();
  }
}

void freeze(void (*then)(Thread&, void*), void* argument) noexcept {
  Thread* const me = self();
  check(me != nullptr, "freeze() is called on a user thread");
  check(!has_live_exception(), "a thread with a live exception is not frozen");
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  worker.lock.lock();
  worker.post = then;
  worker.post_thread = me;
  worker.post_argument = argument;
  // Always to the worker's own context: `then` has a large stack there and holds up no thread.
  switch_contexts(worker, *me, *worker.idle);
}

void* worker_thread_pointer() noexcept {
  const Thread* const me = self();
  check(me != nullptr, "worker_thread_pointer() is called on a user thread");
  return me->worker.load(std::memory_order_relaxed)->thread_pointer;
}

std::uint32_t worker_index(const Worker& worker) noexcept {
  return worker.index;
}

bool has_live_exception() noexcept {
  const Worker* const worker = current_worker();
  const ExceptionGlobals* const globals =
      worker != nullptr ? worker->exceptions : exception_globals();
  return globals->caught != nullptr || globals->uncaught != 0;
}

}  // namespace sterna::threads
