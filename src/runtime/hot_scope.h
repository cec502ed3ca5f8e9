// RuntimeScope for the calls that threads make most often: to yield, locks, semaphores, births and
// joins, which take less time than that needs.
#pragma once

#include <new>

#include "runtime/scope.h"
#include "threads/carriers/border.h"
#include "threads/this_thread.h"

namespace sterna::runtime {

/// The calling thread, if it has a stack of its own: neither a kernel thread nor a rank, which has
/// a thread pointer to change.
[[nodiscard, gnu::always_inline]] inline threads::Thread* find_plain_thread() noexcept {
  return threads::self_if_no_rank();
}

/// The *hot caller*: the calling thread, if it is a plain one and in the code of its program; else
/// null.
[[nodiscard, gnu::always_inline]] inline threads::Thread* find_hot_caller() noexcept {
  threads::Thread* const me = find_plain_thread();
  return me != nullptr && me->in_user.load(std::memory_order_relaxed) ? me : nullptr;
}

/// As RuntimeScope; inline, and for a hot caller no more than the border. The rest says nothing to
/// it: it has no thread pointer of a rank, is no kernel thread, and its program serves any caller
/// for as long as it has workers (Runtime::serve_any_caller), so that there is neither one caller
/// that would have to share, nor a background that would have to give way.
class HotScope {
 public:
  [[gnu::always_inline]] HotScope() noexcept : me_{enter()} {
    if (me_ == nullptr) [[unlikely]] {
      open_other(&other_);
    }
  }
  [[gnu::always_inline]] ~HotScope() {
    if (me_ != nullptr) [[likely]] {
      threads::leave_runtime(*me_);
    } else {
      close_other(&other_);
    }
  }
  HotScope(const HotScope&) = delete;
  HotScope& operator=(const HotScope&) = delete;

  /// The calling thread, if it is a hot caller; else null.
  [[nodiscard]] threads::Thread* caller() const noexcept { return me_; }

 private:
  [[gnu::always_inline]] static threads::Thread* enter() noexcept {
    threads::Thread* const me = find_plain_thread();
    return me != nullptr && threads::enter_runtime(*me) ? me : nullptr;
  }
  [[gnu::noinline, gnu::cold]] static void open_other(RuntimeScope* other) noexcept {
    new (other) RuntimeScope;
  }
  [[gnu::noinline, gnu::cold]] static void close_other(RuntimeScope* other) noexcept {
    other->~RuntimeScope();
  }

  threads::Thread* const me_;
  union {
    RuntimeScope other_;  // Of anybody else.
  };
};

}  // namespace sterna::runtime
