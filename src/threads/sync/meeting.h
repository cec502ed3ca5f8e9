// A meeting of a fixed number of user threads: all but the last to come wait, the last one does
// what is to be done for all, and lets the others go in one go. For collective operations, which
// know who takes part; sync/barrier.h is for everything else.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// Of one that takes part. Written by it before it arrives, and read by the last one.
struct Seat {
  Seat* next = nullptr;      // Who came before.
  Thread* thread = nullptr;  // It sleeps. Null: it waits by other means.
};

/// Reusable at once: who has been let go may arrive for the next time while others have not run
/// yet.
class Meeting {
 public:
  static constexpr std::uint32_t kCountMax = 0xffff;
  /// From 2 to kCountMax take part.
  explicit Meeting(std::uint32_t count) noexcept : count_{count} {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Sleeps until the last one has come, and has let go. Null, then; for the last itself: the seats
  /// of all others, a chain by `next`, whose owners wait until let_go(). User threads; not a
  /// cancellation point. Switches.
  [[nodiscard]] Seat* arrive(Seat& seat) noexcept;
  /// The same for who does not sleep here, but waits until it is told.
  [[nodiscard]] Seat* arrive_awake(Seat& seat) noexcept;

  /// All of the chain go on: those that sleep, oldest first; the owners of the other seats are told
  /// by `tell(seat)`, which may let them write their seats again.
  static void let_go(Seat* chain, void (*tell)(Seat&) noexcept) noexcept;

 private:
  /// Adds the seat. True: it is the last one; `others` has been taken off.
  bool join(Seat& seat, Seat*& others) noexcept;

  // The address of the youngest seat, shifted, and how many have come: one word, so that who comes
  // last has all seats. Taken as a whole only (no ABA). Orders: each releases its seat (A), the
  // last one acquires all of them (A).
  std::atomic<std::uint64_t> word_{0};
  const std::uint32_t count_;
};

}  // namespace sterna::threads
