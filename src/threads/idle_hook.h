// What a worker does when it has no thread to run: poll something, and sleep in a wait that others
// can end. progress/ implements it; a team without one sleeps on a futex.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/syscall.h>

#include "base/syscall.h"
#include "threads/hand_over.h"

namespace sterna::threads {

/// Which scheduling point calls: threads -> progress. See progress/progress.h for what each one
/// does.
enum class SchedulingPoint : std::uint8_t {
  idle,       // The worker has nothing to run.
  switching,  // A thread gives way to another one.
  tick,       // All workers have computed for long. By the ticker, one at a time.
  enter,      // A thread entered the runtime (an MPI call).
  forced,     // Somebody needs progress now.
};

class IdleHook {
 public:
  /// Polls; returns how many events it handled. Runs on the worker's own stack (idle), on that of a
  /// thread (switching) or on the ticker's (tick: only if nobody has polled since the tick before);
  /// must not switch. Any worker may call it at the same time as others.
  virtual std::uint32_t poll(SchedulingPoint point) noexcept = 0;

  /// Whether poll(tick) would do something now; counts as the tick before the next one. Takes no
  /// lock and no memory. By one thread at a time, which may be another one than polls.
  [[nodiscard]] virtual bool needs_tick() noexcept { return true; }

  /// Sleeps in the kernel until an event, wake(), or `deadline_ns` (kNever: none); true. One kernel
  /// thread at a time: false, soon, while another one sleeps here; then it sleeps elsewhere.
  /// As a futex, it does not fall asleep when `word` is not `expected`: a wake() that was meant for
  /// the caller may have ended the sleep of the one before it. Who calls wake() for the caller
  /// changes the word first.
  virtual bool sleep(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
                     std::uint32_t expected) noexcept = 0;

  /// By a worker that would sleep here: for how long it had better be elsewhere, asleep on `word`,
  /// since others attend to what it would wake for; it may be woken there earlier, to ask again.
  /// 0: it may come.
  [[nodiscard]] virtual std::uint64_t absence_ns(const std::atomic<std::uint32_t>& word) noexcept {
    (void)word;
    return 0;
  }
  /// A worker that slept here, or was away for absence_ns(), has found work.
  virtual void note_work() noexcept {}

  /// By a worker that may sleep soon: lets others have its processor.
  virtual void yield_worker() noexcept { raw_system_call(SYS_sched_yield); }

  /// Ends the sleep that is under way, or the next one at once. From anywhere.
  virtual void wake() noexcept = 0;

  /// What a sleep here and its end were lately measured to cost, both sides of what is waited for
  /// together; 0: nothing is known of that. From anywhere.
  [[nodiscard]] virtual std::uint64_t sleep_price_ns() const noexcept { return 0; }

  /// What threads leave to workers that are awake and have nothing to run. The workers count
  /// themselves; poll() takes what is there.
  [[nodiscard]] HandOver& hand_over() noexcept { return hand_over_; }

 protected:
  ~IdleHook() = default;

 private:
  HandOver hand_over_;
};

}  // namespace sterna::threads
