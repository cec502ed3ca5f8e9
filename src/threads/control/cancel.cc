// Cancellation points that do not wait, and the cleanups. Waiting ones are in park.cc.
#include "threads/control/cancel.h"

#include "base/check.h"
#include "threads/life/life.h"
#include "threads/this_thread.h"

namespace sterna::threads {

bool set_cancellable(bool is_cancellable) noexcept {
  Thread* const me = self();
  check(me != nullptr, "set_cancellable() is called on a user thread");
  const bool was_cancellable = me->is_cancellable;
  me->is_cancellable = is_cancellable;
  return was_cancellable;
}

void test_cancel() noexcept {
  Thread* const me = self();
  check(me != nullptr, "test_cancel() is called on a user thread");
  if (me->is_cancellable && is_cancelled(*me)) {
    end_cancelled(*me);
  }
}

void push_cleanup(Cleanup& cleanup) noexcept {
  Thread* const me = self();
  check(me != nullptr, "push_cleanup() is called on a user thread");
  cleanup.outer = me->cleanup;
  me->cleanup = &cleanup;
  me->end_flags |= EndFlag::belongings;
}

bool pop_cleanup(bool execute) noexcept {
  Thread* const me = self();
  check(me != nullptr, "pop_cleanup() is called on a user thread");
  Cleanup* const innermost = me->cleanup;
  if (innermost == nullptr) {
    return false;
  }
  me->cleanup = innermost->outer;
  if (execute) {
    innermost->function(innermost->argument);
  }
  return true;
}

void drop_cleanup(Cleanup& cleanup) noexcept {
  Cleanup** link = &self()->cleanup;
  while (*link != nullptr && *link != &cleanup) {
    link = &(*link)->outer;
  }
  check(*link != nullptr, "a cleanup is dropped after it was pushed");
  *link = cleanup.outer;
}

void end_cancelled(Thread& me) noexcept {
  me.is_cancellable = false;  // Cleanups wait in peace.
  me.end_flags |= EndFlag::cancelled;
  end_current(me);
}

}  // namespace sterna::threads
