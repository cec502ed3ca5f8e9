// Between two ranks of one worker.
#include "threads/direct.h"

#include "base/probe.h"
#include "base/thread_pointer.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

// Shared queues, the trace and the wake of a kernel thread need the runtime's thread pointer.
constexpr std::uint32_t kUnfit =
    ThreadFlag::managed | ThreadFlag::traced | ThreadFlag::kernel_bound;

}  // namespace

DirectLeave try_begin_direct_leave(Thread& me) noexcept {
  // A sanitizer's switch keeps its state in thread-local storage.
  if constexpr (kSanitized) {
    return {};
  }
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  if (worker.countdown.load(std::memory_order_relaxed) <= 1 || !worker.inbox.looks_empty() ||
      (me.flags & kUnfit) != 0 || me.is_cancellable) {
    return {};
  }
  worker.lock.lock();
  // In the section that makes it current, as hold() needs it (control.cc). Where there are
  // priorities, or somebody is held, pick() decides.
  Thread* const next = worker.queue.pop_plain(kUnfit);
  if (next == nullptr) {
    worker.lock.unlock();
    return {};
  }
  worker.count_switch();  // Does not end the count: we have looked.
  me.activity.store(Activity::blocked, std::memory_order_relaxed);
  return {&worker, next};
}

void leave_directly(const DirectLeave& leave, Thread& me, std::uintptr_t own_pointer) noexcept {
  Worker& worker = *leave.worker;
  Thread& next = *leave.next;
  me.flags |= ThreadFlag::own_pointer;
  if ((next.flags & ThreadFlag::own_pointer) == 0) {
    set_thread_pointer(reinterpret_cast<std::uintptr_t>(worker.thread_pointer));
  }
  switch_contexts(worker, me, next);
  me.flags &= ~ThreadFlag::own_pointer;
  set_thread_pointer(own_pointer);
}

bool is_another_ready(const Thread& me) noexcept {
  return me.worker.load(std::memory_order_relaxed)->queue.count() != 0;
}

bool try_make_runnable_here(Thread& thread, const Thread& me) noexcept {
  // Relaxed: see make_runnable().
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  if (home != me.worker.load(std::memory_order_relaxed) || (thread.flags & kUnfit) != 0 ||
      (home->team.sleeper_count.load(std::memory_order_relaxed) != 0 && home->queue.count() != 0)) {
    return false;
  }
  STERNA_PROBE1(thread_wake, &thread);
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  home->lock.lock();
  home->queue.push_back(thread);
  home->lock.unlock();
  return true;
}

}  // namespace sterna::threads
