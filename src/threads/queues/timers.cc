// A binary heap by deadline; each thread knows its place in it, so that disarm() is logarithmic.
#include "threads/queues/timers.h"

#include "base/check.h"
#include "threads/scheduler.h"

namespace sterna::threads {

void Timers::place(std::size_t index, Thread* thread) noexcept {
  heap_[index] = thread;
  thread->timer_index = static_cast<std::uint32_t>(index + 1);
}

void Timers::move_up(std::size_t index) noexcept {
  Thread* const thread = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (heap_[parent]->deadline_ns <= thread->deadline_ns) {
      break;
    }
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, thread);
}

void Timers::move_down(std::size_t index) noexcept {
  Thread* const thread = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) {
      break;
    }
    if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ns < heap_[child]->deadline_ns) {
      ++child;
    }
    if (thread->deadline_ns <= heap_[child]->deadline_ns) {
      break;
    }
    place(index, heap_[child]);
    index = child;
  }
  place(index, thread);
}

void Timers::erase(Thread& thread) noexcept {
  const std::size_t index = thread.timer_index - 1;
  Thread* const last = heap_.back();
  heap_.pop_back();
  thread.timer_index = 0;
  if (last != &thread) {
    place(index, last);
    move_up(index);
    move_down(last->timer_index - 1);
  }
}

void Timers::update_next() noexcept {
  // Relaxed: those that need it exactly hold the lock or are the worker that armed.
  next_ns_.store(heap_.empty() ? kNever : heap_.front()->deadline_ns, std::memory_order_relaxed);
}

void Timers::arm(Thread& thread, std::uint64_t deadline_ns) noexcept {
  const SpinGuard guard{lock_};
  check(thread.timer_index == 0, "a thread waits for one deadline at a time");
  thread.deadline_ns = deadline_ns;
  heap_.push_back(&thread);
  move_up(heap_.size() - 1);
  update_next();
}

void Timers::disarm(Thread& thread) noexcept {
  const SpinGuard guard{lock_};
  if (thread.timer_index != 0) {
    erase(thread);
    update_next();
  }
}

void Timers::fire(std::uint64_t now_ns) noexcept {
  for (;;) {
    Thread* thread = nullptr;
    {
      const SpinGuard guard{lock_};
      if (heap_.empty() || heap_.front()->deadline_ns > now_ns) {
        return;
      }
      thread = heap_.front();
      erase(*thread);
      update_next();
      // Under the lock: after disarm() nobody touches the thread. Beyond it we may only if we won
      // the right to make it runnable, without which it cannot go on.
      if (!expire_wait(*thread)) {
        thread = nullptr;
      }
    }
    if (thread != nullptr) {
      make_runnable(*thread);
    }
  }
}

}  // namespace sterna::threads
