// Errands: threads that were preempted go on for some ticks without a worker.
//
// A thread may be preempted while it holds a lock of a library, of malloc for instance. Another
// thread of the program that wants the lock sleeps in the kernel; its worker is taken over and
// comes to the holder in the end. But the runtime calls malloc as well, and a worker that sleeps
// inside the runtime cannot be taken over. So the ticker, which finds it asleep, lets go on beside
// it all those that were preempted there and wait for it. They are then as threads whose blocking
// call has returned: they come back at their next call, or at the next tick, when they are queued
// again; if the worker still sleeps then, they go once more.
#include <algorithm>
#include <array>

#include "threads/flags.h"
#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

constexpr std::uint32_t kLooksMax = 256;   // Bounds the time in a foreign lock.
constexpr std::uint32_t kErrandsMax = 64;  // At a time.

bool may_go(const Thread& thread) noexcept {
  return (thread.flags & ThreadFlag::kernel_bound) != 0 && thread.is_interrupted;
}

/// It is in no queue: the caller's, who holds the lock of that. Who has passed through the lock, as
/// hold_all() does, sees that it is about to run.
void announce(Thread& thread) noexcept {
  static_cast<Carrier*>(thread.context.stack)->taken.store(&thread, std::memory_order_relaxed);
}

/// It was announced.
void go(Thread& thread) noexcept {
  Carrier& carrier = *static_cast<Carrier*>(thread.context.stack);
  set_flags(thread, thread.flags & ~ThreadFlag::kernel_bound);
  thread.activity.store(Activity::blocked, std::memory_order_relaxed);
  thread.is_taken.store(true, std::memory_order_release);
  carrier.word.store(Carrier::kErrand, std::memory_order_release);  // A of carrier.cc
  futex_wake(&carrier.word, 1);
}

}  // namespace

void Worker::send_on_errands() noexcept {
  if (!lock.try_lock_from_outside(kTickPauses)) {
    return;
  }
  std::array<Thread*, kErrandsMax> errands;
  std::uint32_t count = 0;
  inbox.drain_to(queue);
  if (Dispatch* const dispatch = team.options.dispatch; dispatch != nullptr) {
    // Those that wait in shared queues: from here on they wait in this one.
    for (std::uint32_t i = 0; i < kErrandsMax; ++i) {
      Thread* const thread = dispatch->next(*this, nullptr);
      if (thread == nullptr) {
        break;
      }
      queue.push_back(*thread);
    }
  }
  // The others return at the end only: the most urgent one would be found again and again.
  Thread* others = nullptr;
  Thread** others_end = &others;
  for (std::uint32_t i = std::min(queue.count(), kLooksMax); i > 0 && count < kErrandsMax; --i) {
    Thread* const thread = queue.pop_front();
    if (thread == nullptr) {
      break;  // The rest was held, or recalled.
    }
    if (may_go(*thread)) {
      announce(*thread);
      errands[count++] = thread;
      continue;
    }
    thread->next = nullptr;
    *others_end = thread;
    others_end = &thread->next;
  }
  while (others != nullptr) {
    Thread* const next = others->next;
    queue.push_back(*others);
    others = next;
  }
  lock.unlock_from_outside();
  for (std::uint32_t i = 0; i < count; ++i) {
    go(*errands[i]);
  }
}

}  // namespace sterna::threads
