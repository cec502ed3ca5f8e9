// Who sleeps and who rings: the agreement that makes a wake-up cost nothing while nobody sleeps.
//
// Sleeper: sets its flag, fences, looks once more for packets (or room), sleeps on its eventfd.
// Ringer:  stores a packet (or room), fences, reads the flag, and rings when it is set.
// With both fences one of the two sees the other's store; without the ringer's fence its load may
// pass its own store: it reads "awake", the sleeper reads "empty", and the packet lies until
// something else wakes the sleeper. The ringer's fence would wait for its store to reach the cache,
// on every packet. So the sleeper pays for both: membarrier(2) makes every processor that runs a
// process of the job execute a fence, between the sleeper's store and its look. What the ringer
// stored before that fence the sleeper sees; what it reads after it shows the flag.
// Where the system forbids membarrier, the flag kFence of the segment asks the ringers for theirs.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

/// Registers this process for membarrier; false: the system cannot do it.
[[nodiscard]] bool register_for_membarrier() noexcept;

/// The sleeper's fence. `registered` is what register_for_membarrier() said.
void sleeper_fence(bool registered) noexcept;

/// The ringer's fence; `state` is a value of the sleeper's Segment::state.
inline void ringer_fence(std::uint32_t state) noexcept {
  if ((state & kFence) != 0) [[unlikely]] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // The compiler keeps the order, too.
  }
}

/// The owner of `sleeper` was seen asleep: wakes it; one of several ringers rings.
[[gnu::cold]] void ring_asleep(Segment& sleeper, int bell_fd) noexcept;
/// After ringer_fence(): whether the owner of `sleeper` is to be woken by ring_asleep().
[[nodiscard]] inline bool is_asleep(const Segment& sleeper) noexcept {
  // Relaxed: ordered by ringer_fence; the bell itself orders what the woken side reads.
  return (sleeper.state.load(std::memory_order_relaxed) & kAsleep) != 0;
}

/// Rings without asking.
void ring(int bell_fd) noexcept;

/// Takes the rings away.
void silence(int bell_fd) noexcept;

}  // namespace sterna::net::shm
