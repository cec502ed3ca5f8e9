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
//
// But membarrier interrupts peers that compute, each for 5 us in a virtual machine, and most sleeps
// are short. So a sleep goes without it and has an end (Doze): a packet (or room) whose ringer
// passed its own store lies until then at most. Stores are on their way for less than a
// microsecond, and so long the sleeper looks on once its flag is set: no such packet was seen in a
// million sleeps. Who has slept until the end, and had nothing, has the fence next, and sleeps on.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

/// Registers this process for membarrier; false: the system cannot do it.
[[nodiscard]] bool register_for_membarrier() noexcept;

/// The sleeper's fence. `registered` is what register_for_membarrier() said.
void sleeper_fence(bool registered) noexcept;

/// The sleeps without a fence for all processors, of one sleeper.
class Doze {
 public:
  static constexpr std::uint64_t kLimitNs = 1'000'000;
  static constexpr std::uint64_t kSettledNs = 1'000;

  /// A sleep begins, with the inbox at `place`. False: the last one lasted until its end, nothing
  /// has come since, and this one must have the fence.
  [[nodiscard]] bool begin(std::uint64_t now, std::uint32_t place) noexcept {
    const bool is_deep = was_whole_ && place == place_;
    was_whole_ = false;
    begin_ns_ = now;
    end_ns_ = is_deep ? kNever : now + kLimitNs;
    place_ = place;
    return !is_deep;
  }
  /// It is over: by itself, by a ring, or because it was only asked whether it could be (a tick).
  void end(std::uint64_t now) noexcept { was_whole_ = now >= end_ns_; }
  /// Whether what the others had on their way when it began can be seen.
  [[nodiscard]] bool is_settled(std::uint64_t now) const noexcept {
    return now - begin_ns_ >= kSettledNs;
  }
  /// kNever: the sleep has the fence.
  [[nodiscard]] std::uint64_t end_ns() const noexcept { return end_ns_; }

 private:
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = kNever;
  std::uint32_t place_ = 0;
  bool was_whole_ = false;
};

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
