// The one kernel thread that calls the runtime of a process, until a second one does. Programs that
// ask for MPI_THREAD_MULTIPLE mostly call from one thread all the same, or for a long time: as long
// as that is so, locks need exclude nobody, as below that level, and requests cost less. The first
// call of a second thread ends it for ever: it is *shared* from then on.
//
// The thread is the owner of a BiasedLock, which it holds throughout each of its calls but where it
// waits, polls or runs code of the program (give_way(), Away): there it is in nothing that another
// thread must not see half done, since at this level another thread might have come there anyway.
// To take and give the lock costs it no locked instruction.
//
//   owner:   owner_ is me? (1)  inside_.lock()  owner_ is me still? (2)  the call  inside_.unlock()
//   another: inside_ from outside  share()  owner_ = nobody (A)  inside_ given back
//   others:  owner_ is nobody? (acquire, A)  the call, with locks
//
// Forbidden: a call of the owner without locks beside one of another. The other one's begins after
// A. If the owner took the lock before the other one did, that waited for its end, or until it gave
// way, and after that it looks again (2). If it took it later, then after the lock was given back,
// which it acquires, and (2) finds nobody. (1) alone is not enough: all of that may come after it.
// What share() changes is read by the owner in the lock, by others after A. tests:
// one_caller_model_test.cc, one_caller_test.cc.
//
// Nobody may wait inside, in another way than those, for what a second thread does.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_pointer.h"
#include "threads/queues/biased_lock.h"

namespace sterna::progress {

class OneCaller {
 public:
  /// Changes what serves one caller to what serves several. Called once, by the thread that shares,
  /// while nobody else is inside. Enters nothing, waits for nobody.
  using Share = void (*)(void* argument) noexcept;

  /// By the one thread, within a call of its. register_process_barrier() has succeeded.
  OneCaller(Share when_shared, void* argument) noexcept
      : when_shared_{when_shared}, argument_{argument}, owner_{thread_pointer()} {
    inside_.lock();
    depth_ = 1;
  }
  OneCaller(const OneCaller&) = delete;
  OneCaller& operator=(const OneCaller&) = delete;

  /// At the begin and at the end of each call, which may be nested. Any kernel thread: after
  /// enter() it is either the one caller or one of several.
  void enter() noexcept {
    if (!is_owner()) [[unlikely]] {
      share();
      return;
    }
    if (depth_ != 0 || come_in()) [[likely]] {
      ++depth_;
    }
  }
  void leave() noexcept {
    // Outside: it was made in a call of the program that another call has made.
    if (is_owner() && depth_ != 0 && --depth_ == 0) [[likely]] {
      inside_.unlock();
    }
  }

  /// The same for a call that neither waits nor nests. False: the caller is not the one caller, and
  /// nothing has happened.
  [[nodiscard, gnu::always_inline]] bool try_enter_briefly() noexcept {
    return is_owner() && come_in();
  }
  void leave_briefly() noexcept { inside_.unlock(); }

  /// Where a call may be interrupted by others. Any thread.
  void give_way() noexcept {
    if (inside_.is_wanted()) [[unlikely]] {
      give_way_slowly();
    }
  }

  /// When it returns, it is shared. Any thread, inside or outside of a call.
  void share() noexcept;
  [[nodiscard]] bool is_shared() const noexcept {
    return owner_.load(std::memory_order_acquire) == kNobody;  // A
  }

  /// For its life the caller, if it is the one caller and inside, is outside: around what may take
  /// long. `caller` may be null.
  class Away {
   public:
    explicit Away(OneCaller* caller) noexcept
        : caller_{caller}, depth_{caller != nullptr ? caller->step_out() : 0} {}
    ~Away() {
      if (depth_ != 0) {
        caller_->step_in(depth_);
      }
    }
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;

   private:
    OneCaller* const caller_;
    const std::uint32_t depth_;
  };

 private:
  static constexpr std::uintptr_t kNobody = 0;

  [[nodiscard, gnu::always_inline]] bool is_owner() const noexcept {
    return owner_.load(std::memory_order_acquire) == thread_pointer();
  }
  /// By the owner, outside. False: it is not that any more, and still outside.
  [[nodiscard, gnu::always_inline]] bool come_in() noexcept {
    inside_.lock();
    if (is_owner()) [[likely]] {
      return true;
    }
    inside_.unlock();
    return false;
  }
  [[nodiscard]] std::uint32_t step_out() noexcept;
  void step_in(std::uint32_t depth) noexcept;
  void give_way_slowly() noexcept;
  void end() noexcept;

  const Share when_shared_;
  void* const argument_;
  std::atomic<std::uintptr_t> owner_;  // Its thread pointer, or kNobody. Written once, inside.
  std::uint32_t depth_ = 0;            // Of calls in calls. The owner's.
  threads::BiasedLock inside_{true};
};

/// That of this process while it is not shared; else null, which is acquired with what share()
/// changed. Not inline: libmpi_abi.so must see that of libsterna.so.
extern std::atomic<OneCaller*> process_caller;

}  // namespace sterna::progress
