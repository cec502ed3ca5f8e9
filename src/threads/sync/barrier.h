// A barrier for a number of participants; the last one wakes the others in one go.
#pragma once

#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

/// What a participant does until all have come.
enum class BarrierWait : std::uint8_t {
  sleep,  // Leaves the processor until it is woken.
  yield,  // Lets others run and looks again: less work if all participants share few workers.
};

/// Reusable at once: the next round may begin before all have left the last one.
class Barrier {
 public:
  explicit Barrier(std::uint32_t count, BarrierWait wait = BarrierWait::sleep) noexcept;
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  /// True for the last to arrive of each round. Switches.
  bool arrive_and_wait() noexcept;

  /// The two halves, for work in between: arrive() gives the round, wait() returns when all have
  /// arrived in it; each participant calls both, in turn. Only wait() switches.
  struct Round {
    std::uint32_t number;
    bool is_last;
  };
  Round arrive() noexcept;
  void wait(Round round) noexcept;

  [[nodiscard]] std::uint32_t count() noexcept;
  /// Participants come (more than 0) or leave for good; who leaves has not arrived in this round.
  /// Those who wait go on if the last one they waited for leaves. False: nobody would be left.
  bool add_count(std::int32_t change) noexcept;
  /// A hint: somebody has arrived, and not all have.
  [[nodiscard]] bool is_used() noexcept;

 private:
  /// Under lock_: all have come. The chain to signal.
  WaitNode* complete() noexcept;

  SpinLock lock_;
  const BarrierWait wait_;
  std::uint32_t count_;                  // Guard: lock_.
  std::uint32_t arrived_ = 0;            // Guard: lock_.
  std::atomic<std::uint32_t> round_{0};  // Written under lock_.
  WaitList waiters_;                     // Guard: lock_.
};

}  // namespace sterna::threads
