// What Progress learns of its callers: whether they wait at once after what they have started.
#include "progress/wait_habits.h"

#include "base/thread_pointer.h"
#include "progress/impl.h"
#include "progress/progress.h"
#include "threads/this_thread.h"

namespace sterna::progress {
namespace {

/// Any number that no other caller has meanwhile.
std::uintptr_t caller_id() noexcept {
  const threads::Thread* const me = threads::self();
  return me != nullptr ? reinterpret_cast<std::uintptr_t>(me) : thread_pointer();
}

}  // namespace

WaitHabits::Habit Progress::find_habit() const noexcept {
  return impl_->habits.of(caller_id());
}

void Progress::has_started() noexcept {
  impl_->habits.started(caller_id(), now_here());
  has_habits_.store(true, std::memory_order_relaxed);
}

void Progress::has_left_open() noexcept {
  const bool is_steady = habit_of_caller().is_steady;
  has_started();
  if (!is_steady) {
    call_worker();
  }
}

void Progress::learn_wait(bool is_alone) noexcept {
  const std::uintptr_t caller = caller_id();
  if (impl_->habits.of(caller).is_open) {
    impl_->habits.waits(caller, is_alone, now_here());
  }
}

}  // namespace sterna::progress
