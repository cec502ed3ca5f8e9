// The rare ways of the run queue: priorities other than normal, and threads that are held.
#include "threads/queues/run_queue.h"

#include <bit>

#include "base/check.h"
#include "threads/control/measure.h"
#include "threads/queues/kept.h"
#include "threads/queues/worker_set.h"

namespace sterna::threads {

bool RunQueue::List::remove(Thread& thread) noexcept {
  Thread* before = nullptr;
  for (Thread* one = head; one != nullptr; before = one, one = one->next) {
    if (one == &thread) {
      (before == nullptr ? head : before->next) = thread.next;
      if (tail == &thread) {
        tail = before;
      }
      return true;
    }
  }
  return false;
}

bool RunQueue::List::has(const Thread* thread) const noexcept {
  const Thread* one = head;
  while (one != nullptr && one != thread) {
    one = one->next;
  }
  return one != nullptr;
}

void RunQueue::close(Thread* passing) noexcept {
  set_levels(levels_ | kClosed);
  passing_ = passing;
}

void RunQueue::open() noexcept {
  set_levels(levels_ & ~kClosed);
  passing_ = nullptr;
}

bool RunQueue::contains(const Thread& thread) const noexcept {
  bool is_here = normal_.has(&thread);
  // Its priority may have changed since it was queued.
  for (std::uint32_t left = levels_ & ~kClosed; !is_here && left != 0; left &= left - 1) {
    is_here = others_[static_cast<std::size_t>(std::countr_zero(left))].has(&thread);
  }
  return is_here;
}

bool RunQueue::remove(Thread& thread) noexcept {
  bool is_here = normal_.remove(thread);
  for (std::uint32_t left = levels_ & ~kClosed; !is_here && left != 0; left &= left - 1) {
    List& list = others_[static_cast<std::size_t>(std::countr_zero(left))];
    is_here = list.remove(thread);
    if (list.head == nullptr) {
      set_levels(levels_ & ~(left & -left));
    }
  }
  if (is_here) {
    add(-1);
  }
  return is_here;
}

void RunQueue::push_front(Thread& thread) noexcept {
  const std::uint8_t priority = thread.priority.load(std::memory_order_relaxed);
  check(priority < kPriorityCount, "a priority is below kPriorityCount");
  List& list = priority == kPriorityNormal ? normal_ : others_[priority];
  thread.next = list.head;
  if (list.head == nullptr) {
    list.tail = &thread;
  }
  list.head = &thread;
  if (priority != kPriorityNormal) {
    set_levels(levels_ | 1U << priority);
  }
  add(1);
}

void RunQueue::push_level(Thread& thread, std::uint8_t priority) noexcept {
  check(priority < kPriorityCount, "a priority is below kPriorityCount");
  others_[priority].append(thread);
  set_levels(levels_ | 1U << priority);
  add(1);
}

int RunQueue::highest() const noexcept {
  if ((levels_ & kClosed) != 0) {
    return kPriorityCount;
  }
  const std::uint32_t present = levels_ | (normal_.head != nullptr ? 1U << kPriorityNormal : 0U);
  return std::bit_width(present) - 1;
}

Thread* RunQueue::take_first() noexcept {
  if ((levels_ & kClosed) != 0) {
    return passing_ != nullptr && remove(*passing_) ? passing_ : nullptr;
  }
  const int priority = highest();
  if (priority < 0) {
    return nullptr;
  }
  List& list = priority == kPriorityNormal ? normal_ : others_[static_cast<std::size_t>(priority)];
  Thread* const first = list.head;
  list.drop_first();
  add(-1);
  if (priority != kPriorityNormal && list.head == nullptr) {
    set_levels(levels_ & ~(1U << priority));
  }
  return first;
}

namespace {

/// Turns an order to stay off the processors into the fact. True: it was one.
bool let_go(Thread& thread) noexcept {
  Hold word = thread.hold.load(std::memory_order_relaxed);
  // A: who lets it go on sees that it is in no queue.
  while (has(word, Hold::wanted) &&
         !thread.hold.compare_exchange_weak(word, without(word, Hold::wanted) | Hold::held,
                                            std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  return has(word, Hold::wanted);
}

}  // namespace

Thread* RunQueue::pop_slow() noexcept {
  Thread* leaving = nullptr;  // May not run here, nor be passed on before it has left.
  Thread* found = nullptr;
  while (found == nullptr) {
    Thread* const first = take_first();
    if (first == nullptr) {
      break;
    }
    if (let_go(*first)) {
      continue;
    }
    const Hold word = first->hold.load(std::memory_order_relaxed);
    if (has(word, Hold::restricted) && !apply_restriction(*first)) {
      if (is_leaving(*first)) {
        change_hold(*first, [](Hold its) { return its | Hold::restricted; });
        leaving = first;
      } else {
        pass_on(*first);
      }
    } else if (has(word, Hold::recalled)) {
      give_back(*first);
    } else {
      if (has(word, Hold::measured)) {
        begin_measuring(*first);
      }
      found = first;
    }
  }
  if (leaving != nullptr) {
    push_back(*leaving);
  }
  return found;
}

Thread* RunQueue::rotate_slow(Thread& thread) noexcept {
  if (thread.hold.load(std::memory_order_relaxed) == Hold::none &&
      ((levels_ & kClosed) != 0 ? passing_ == &thread
                                : highest() < thread.priority.load(std::memory_order_relaxed))) {
    return &thread;
  }
  push_back(thread);
  return pop_slow();
}

}  // namespace sterna::threads
