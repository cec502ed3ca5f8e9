// See poll_tasks.h.
#include "progress/poll_tasks.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/thread_pointer.h"
#include "progress/impl.h"
#include "threads/this_thread.h"

namespace sterna::progress {

threads::SchedulingPoint Progress::point() const noexcept {
  return impl_->point;
}

Result<std::unique_ptr<PollTasks>> PollTasks::open(Progress& progress) noexcept {
  std::unique_ptr<PollTasks> made{new (std::nothrow) PollTasks{progress}};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> added = progress.add(*made); !added) {
    return added.error();
  }
  return made;
}

PollTasks::~PollTasks() {
  progress_.remove(*this);
  while (first_ != nullptr) {  // Nobody is called any more.
    unlink(*first_);
  }
}

bool PollTasks::add(PollTask& task) noexcept {
  {
    const SpinGuard guard{lock_};
    if (task.is_in_list) {
      return false;
    }
    task.is_in_list = true;
    task.added_in = round_;
    task.next = nullptr;
    task.previous = last_;
    (last_ == nullptr ? first_ : last_->next) = &task;
    last_ = &task;
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  progress_.wake_for_source();  // Who sleeps asks for the deadline anew.
  return true;
}

void PollTasks::unlink(PollTask& task) noexcept {
  (task.previous == nullptr ? first_ : task.previous->next) = task.next;
  (task.next == nullptr ? last_ : task.next->previous) = task.previous;
  if (cursor_ == &task) {
    cursor_ = task.next;
  }
  task.is_in_list = false;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

bool PollTasks::remove(PollTask& task) noexcept {
  bool was_in_list = false;
  for (bool is_called = true; is_called;) {
    {
      const SpinGuard guard{lock_};
      if (task.is_in_list) {
        was_in_list = true;
        unlink(task);
      }
      is_called = called_ == &task && caller_ != thread_pointer();
    }
    if (is_called) {
      threads::yield();  // It is a short function.
    }
  }
  return was_in_list;
}

/// The next of the round, which is called from now on; null: the round is over.
PollTask* PollTasks::next_due(std::uint32_t point) noexcept {
  const SpinGuard guard{lock_};
  called_ = nullptr;
  // The list ascends by rounds: behind a task of this one there is no earlier one.
  while (cursor_ != nullptr && cursor_->added_in != round_) {
    PollTask& task = *cursor_;
    cursor_ = task.next;
    if ((task.points & point) != 0) {
      if (!task.is_repeated) {
        unlink(task);
      }
      called_ = &task;
      caller_ = thread_pointer();
      return &task;
    }
  }
  return nullptr;
}

std::uint32_t PollTasks::poll() noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  {
    const SpinGuard guard{lock_};
    cursor_ = first_;
    ++round_;  // What was added before has an earlier one.
  }
  std::uint32_t events = 0;
  const std::uint32_t point = bit_of(progress_.point());
  while (PollTask* const task = next_due(point)) {
    // Copied: a task that is called once may be gone when its function has returned.
    auto* const function = task->function;
    void* const argument = task->argument;
    events += function(argument);
  }
  return events;
}

std::uint64_t PollTasks::next_deadline_ns() noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return kNever;
  }
  std::uint64_t period_ns = kNever;
  const SpinGuard guard{lock_};
  for (const PollTask* task = first_; task != nullptr; task = task->next) {
    if (task->period_ns != 0) {
      period_ns = std::min(period_ns, task->period_ns);
    }
  }
  return period_ns == kNever ? kNever : now_ns() + period_ns;
}

}  // namespace sterna::progress
