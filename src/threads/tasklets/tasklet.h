// Deferred work: a function that is to run soon, once, on a user thread of its own, however often
// it was asked for meanwhile. As the tasklets of Linux and of Marcel (linux_interrupt.h), but on
// threads: it may wait, it is bound to a part of the machine as a thread is, and several run at
// once on several workers; one never runs twice at a time.
//
// Each call of the function has the threads of the system behind it: a birth costs as much as a few
// switches, and idle workers help. Between two calls nothing is kept but the word.
//
// Order: each step is one exchange of the word (tasklet_word.h). schedule() releases, the carrier
// acquires: the function sees what was written before it was asked for, also by those who were
// coalesced, since their exchange (of the word for itself) precedes the carrier's. The end of a
// call releases, disable() and cancel() acquire.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "threads/tasklets/tasklet_word.h"
#include "threads/team.h"

namespace sterna::threads {

class Tasklet {
 public:
  struct Options {
    void (*function)(void*) = nullptr;  // On a user thread; may wait and call anything.
    void* argument = nullptr;
    std::uint8_t priority = kPriorityCount - 1;
    bool preemptible = true;
    bool is_user_code = true;
  };

  explicit Tasklet(const Options& options) noexcept : options_{options} {}
  Tasklet(const Tasklet&) = delete;
  Tasklet& operator=(const Tasklet&) = delete;

  enum class Asked : std::uint8_t { scheduled, coalesced };
  /// It runs once after this, on one of the workers of `place`; if it was asked for already, and
  /// has not begun: as then. Any kernel thread; does not switch. Fails if no thread can be started:
  /// then it is not scheduled, nor for those who asked meanwhile.
  Result<Asked> schedule(Team& team, tasklet::Place place = {}) noexcept;

  /// It does not run from here until enable() was called as often; what is asked for meanwhile runs
  /// then. Waits for the end of a call that is under way, unless by that call itself. False: it is
  /// disabled too often (65535). Switches.
  [[nodiscard]] bool disable() noexcept;
  /// False: it was not disabled. Does not switch. Fails as schedule().
  Result<bool> enable(Team& team) noexcept;

  /// What was asked for is forgotten, and no thread knows of it when it returns, if nobody
  /// schedules it meanwhile: its memory may go. False, and nothing has changed: its function calls.
  /// Switches.
  [[nodiscard]] bool cancel() noexcept;

  /// For who looks at it from outside: an old answer, but who sees that it is at rest sees all that
  /// it has done. Acquire: of the carrier's last exchange.
  [[nodiscard]] bool is_scheduled() const noexcept {
    return (word_.load(std::memory_order_acquire) & tasklet::kScheduled) != 0;
  }
  [[nodiscard]] bool is_busy() const noexcept {
    return (word_.load(std::memory_order_acquire) & (tasklet::kScheduled | tasklet::kCarried)) != 0;
  }
  [[nodiscard]] bool is_carried() const noexcept {
    return (word_.load(std::memory_order_acquire) & tasklet::kCarried) != 0;
  }
  [[nodiscard]] bool is_disabled() const noexcept {
    return tasklet::is_disabled(word_.load(std::memory_order_acquire));
  }

 private:
  template <typename Transition>
  tasklet::Step change(Transition transition) noexcept;
  Result<> carry(Team& team) noexcept;
  static void run(void* self) noexcept;
  void await(std::uint64_t bits) noexcept;
  [[nodiscard]] bool is_caller() const noexcept;

  const Options options_;
  std::atomic<std::uint64_t> word_{0};
  // Who calls the function now. Written by the carrier; relaxed: others compare it with themselves.
  std::atomic<const Thread*> carrier_{nullptr};
};

}  // namespace sterna::threads
