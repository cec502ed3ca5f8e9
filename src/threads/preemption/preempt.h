// Preemption: threads that compute for long give their worker to others, without a call.
//
// Three modes, of a team and of single threads (Preemption). `none`. `slice`: a thread that has had
// its worker for a slice gives way to those of its priority, and at once to those of a higher
// class; it goes to the end of the queue. `communication`: no thread is preempted by another of its
// class (base/priority.h); only one of a higher class (which a poll of the network made ready)
// interrupts it, and afterwards it is the next of its own to run (Perez, "Integrating threads into
// data-parallel run-time systems", 1.4: a thread that computes is not preempted until it blocks, so
// that communication overlaps best).
//
// How: the ticker finds the worker, notes the wish, and sends a signal to the kernel thread. The
// handler does nothing unless the thread is in the code of its program (border.h). Then another
// kernel thread takes the worker over (carrier.h), and the preempted one waits in the handler, with
// all that it has in malloc, stdio and unwinders, until a worker picks its thread. A thread in the
// runtime gives way on its way out, by a plain switch.
//
// The ticker takes no memory, for whose locks it would have to wait: it takes kernel threads that
// others have made (spares.cc); polls and timers are another ticker's.
//
// A lock of a library that is held by a preempted thread stops who wants it in the kernel; that
// worker is taken over in turn, so the holder runs again. It is rare, because the handler waits, a
// few ticks, until the thread is outside libc, the loader and the C++ library.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "threads/preemption/ticker.h"
#include "threads/thread.h"

namespace sterna::threads {

class Carrier;
class TeamState;
class Worker;

/// The current thread is not preempted until the call that undoes it; they nest. On a kernel
/// thread: nothing.
void disable_preemption() noexcept;
/// Gives way at once to who has waited meanwhile. Switches.
void enable_preemption() noexcept;

/// Of Thread::preempt_off: what set_preemption() or ThreadOptions::preemption forbade, what bubbles
/// around the thread forbid, and a mode that is the thread's own. The other bits count the calls of
/// disable_preemption(). Anybody changes these bits, the thread the count.
inline constexpr std::uint32_t kPreemptForbidden = 1U << 31;
inline constexpr std::uint32_t kPreemptForbiddenAround = 1U << 30;
inline constexpr std::uint32_t kPreemptForbiddenBits = kPreemptForbidden | kPreemptForbiddenAround;
inline constexpr std::uint32_t kPreemptSlice = 1U << 29;
inline constexpr std::uint32_t kPreemptCommunication = 1U << 28;
inline constexpr std::uint32_t kPreemptModeBits = kPreemptSlice | kPreemptCommunication;
inline constexpr std::uint32_t kPreemptBits = kPreemptForbiddenBits | kPreemptModeBits;

[[nodiscard]] constexpr std::uint32_t preempt_bits(Preemption preemption) noexcept {
  return preemption == Preemption::none            ? kPreemptForbidden
         : preemption == Preemption::slice         ? kPreemptSlice
         : preemption == Preemption::communication ? kPreemptCommunication
                                                   : 0;
}

/// Whether `thread`, which has not ended, may be preempted, beside what its own calls of
/// disable_preemption() say. A signal that is on its way may come through once more. From anywhere.
void set_preemption(Thread& thread, Preemption preemption) noexcept;
/// The same, for what holds the thread: forgets nothing that set_preemption() has said.
void set_preemptible_around(Thread& thread, bool is_preemptible) noexcept;
/// `none` if one of the two forbids it.
[[nodiscard]] Preemption preemption_of(const Thread& thread) noexcept;

/// Border::wish: the priority that waits + 1, whether the slice is over, and whether somebody asks
/// for the worker.
namespace Wish {
inline constexpr std::uint8_t none = 0;
inline constexpr std::uint8_t slice_over = 0x80;
inline constexpr std::uint8_t asked = 0x40;
inline constexpr std::uint8_t priority = 0x3f;
}  // namespace Wish

/// How long the ticker waits for the owner of a queue (BiasedLock), who may wait for somebody whom
/// only a tick lets go on. The next tick tries again.
inline constexpr std::uint32_t kTickPauses = 1004;

/// What the ticker does for preemption and for workers whose kernel thread sleeps. A tick takes no
/// memory, starts no kernel thread and waits for nobody for long: a thread that was preempted may
/// have what it would wait for.
class Preemptor final : public TickClient {
 public:
  explicit Preemptor(TeamState& team) noexcept;

  [[nodiscard]] bool wants_ticks() noexcept override;
  std::uint32_t tick(std::uint64_t now_ns) noexcept override;

  /// The thread that runs there should give way to what waits for that worker, at the next tick, as
  /// if its slice were over. From anywhere.
  void ask(std::uint32_t worker) noexcept { asked_[worker].store(true, std::memory_order_relaxed); }

  /// For tests and reports: threads that were preempted, workers that were taken over. Relaxed.
  std::atomic<std::uint64_t> preempted_count{0};
  std::atomic<std::uint64_t> taken_count{0};

 private:
  /// What a worker did when it was looked at.
  struct Look {
    const Thread* thread = nullptr;
    const Carrier* carrier = nullptr;
    std::uint32_t countdown = 0;
    std::uint64_t since_ns = 0;
    std::uint64_t processor_ns = 0;  // Of its carrier.
    bool was_asleep = false;
  };

  void look_at(Worker& worker, Look& look, std::uint64_t now_ns) noexcept;
  bool take_over_if_asleep(Worker& worker, Carrier& carrier, Look& look) noexcept;
  void call_back_strays() noexcept;

  TeamState& team_;
  std::uint32_t making_ticks_ = 0;              // So long spares are being made (spares.cc).
  // Somebody waits for the next tick more than for the processor. Of the tick that is under way.
  bool is_urgent_ = false;
  // Where processors are scarce a slice is longer, too: who computes has part of it only.
  std::uint32_t intervals_ = 1;
  std::vector<Look> looks_;                     // By worker. The ticker's only.
  std::unique_ptr<std::atomic<bool>[]> asked_;  // The same; relaxed: a hint.
};

/// The handler of the signal, for all teams of the process. Once; a failure is reported.
void install_preemption() noexcept;

}  // namespace sterna::threads
