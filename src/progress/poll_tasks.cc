// See poll_tasks.h.
#include "progress/poll_tasks.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/thread_pointer.h"
#include "progress/impl.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::progress {

threads::SchedulingPoint Progress::point() const noexcept {
  return impl_->point;
}

Result<std::unique_ptr<PollTasks>> PollTasks::open(Progress& progress, Around around,
                                                   void* context) noexcept {
  std::unique_ptr<PollTasks> made{new (std::nothrow) PollTasks{progress, around, context}};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  return made;
}

PollTasks::~PollTasks() {
  if (is_polled_.load(std::memory_order_relaxed)) {
    progress_.remove(*this);
  }
  while (first_ != nullptr) {  // Nobody is called any more.
    unlink(*first_);
  }
}

bool PollTasks::add(PollTask& task) noexcept {
  if (!is_polled_.load(std::memory_order_relaxed) &&
      !is_polled_.exchange(true, std::memory_order_relaxed)) {
    check(progress_.add(*this).has_value(), "a source without a descriptor can be added");
  }
  {
    const SpinGuard guard{lock_};
    if (task.is_in_list) {
      return false;
    }
    link(task);
  }
  progress_.wake_for_source();  // Who sleeps asks for the deadline anew.
  return true;
}

/// Behind all that are as urgent. lock_ is held.
void PollTasks::link(PollTask& task) noexcept {
  PollTask* before = last_;
  while (before != nullptr && before->priority < task.priority) {
    before = before->previous;
  }
  task.is_in_list = true;
  task.added_in = round_;
  task.previous = before;
  task.next = before == nullptr ? first_ : before->next;
  (before == nullptr ? first_ : before->next) = &task;
  (task.next == nullptr ? last_ : task.next->previous) = &task;
  count_.fetch_add(1, std::memory_order_relaxed);
}

bool PollTasks::is_in(const PollTask& task) noexcept {
  const SpinGuard guard{lock_};
  return task.is_in_list;
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
      if (task.is_in_list) {  // Also if the call that is awaited has added it again.
        was_in_list = true;
        unlink(task);
      }
      is_called = is_called_elsewhere(task);
    }
    if (is_called) {
      threads::yield();  // It is a short function.
    }
  }
  return was_in_list;
}

/// lock_ is held.
bool PollTasks::is_called_elsewhere(const PollTask& task) const noexcept {
  return called_ == &task && caller_ != thread_pointer();
}

void PollTasks::mask(PollTask& task) noexcept {
  for (bool is_called = true; is_called;) {
    {
      const SpinGuard guard{lock_};
      task.is_masked = true;
      is_called = is_called_elsewhere(task);
    }
    if (is_called) {
      threads::yield();
    }
  }
}

void PollTasks::unmask(PollTask& task) noexcept {
  {
    const SpinGuard guard{lock_};
    task.is_masked = false;
  }
  progress_.wake_for_source();  // Who sleeps asks for the deadline anew.
}

/// The next of the round, which is called from now on; null: the round is over.
PollTask* PollTasks::next_due(std::uint32_t point, std::uint32_t worker) noexcept {
  const SpinGuard guard{lock_};
  called_ = nullptr;
  while (cursor_ != nullptr) {
    PollTask& task = *cursor_;
    cursor_ = task.next;
    if (task.added_in == round_) {
      continue;
    }
    const bool is_ours = (worker >= task.worker_first && worker < task.worker_end) ||
                         task.worker_end == PollTask::kAllWorkers ||
                         point == bit_of(threads::SchedulingPoint::tick);
    if ((task.points & point) != 0 && is_ours && !task.is_masked) {
      if (!task.is_repeated) {
        unlink(task);
      }
      called_ = &task;
      caller_ = thread_pointer();
      return &task;
    }
    const bool is_missed = !is_ours && task.period_ns != 0 && !task.is_masked &&
                           (task.points & bit_of(threads::SchedulingPoint::idle)) != 0;
    if (is_missed && (missed_period_ns_ == 0 || task.period_ns < missed_period_ns_)) {
      missed_first_ = task.worker_first;
      missed_end_ = task.worker_end;
      missed_period_ns_ = task.period_ns;
    }
  }
  return nullptr;
}

/// The worker that got up for the period of a task is not always one of the task's place: then one
/// of these gets up, too, if all of them sleep, and polls before it sleeps again.
void PollTasks::wake_place(threads::TeamState& team) noexcept {
  const std::uint64_t now = now_ns();
  if (now < wake_at_ns_) {
    return;
  }
  wake_at_ns_ = now + missed_period_ns_;
  const std::size_t end = std::min<std::size_t>(missed_end_, team.workers.size());
  for (std::size_t i = missed_first_; i < end; ++i) {
    if (team.workers[i]->wake()) {
      return;
    }
  }
}

std::uint32_t PollTasks::poll() noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  {
    const SpinGuard guard{lock_};
    cursor_ = first_;
    missed_period_ns_ = 0;
    ++round_;  // What was added before has an earlier one.
  }
  std::uint32_t events = 0;
  const std::uint32_t point = bit_of(progress_.point());
  const threads::Worker* const here = threads::this_worker();
  const std::uint32_t worker = here != nullptr ? here->index : PollTask::kAllWorkers;
  while (PollTask* const task = next_due(point, worker)) {
    // Copied: a task that is called once may be gone when its function has returned.
    auto* const function = task->function;
    void* const argument = task->argument;
    events += around_ == nullptr ? function(argument) : around_(context_, function, argument);
  }
  if (missed_period_ns_ != 0 && here != nullptr) [[unlikely]] {
    wake_place(here->team);
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
    if (task->period_ns != 0 && !task->is_masked) {
      period_ns = std::min(period_ns, task->period_ns);
    }
  }
  return period_ns == kNever ? kNever : now_ns() + period_ns;
}

}  // namespace sterna::progress
