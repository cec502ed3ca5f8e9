// A barrier for a fixed number of participants; the last one wakes the others in one go.
#pragma once

#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

class Barrier {
 public:
  explicit Barrier(std::uint32_t count) noexcept;
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  /// True for the last to arrive of each round. Reusable at once. Switches.
  bool arrive_and_wait() noexcept;

 private:
  const std::uint32_t count_;
  SpinLock lock_;
  std::uint32_t arrived_ = 0;  // Guard: lock_.
  WaitList waiters_;           // Guard: lock_.
};

}  // namespace sterna::threads
