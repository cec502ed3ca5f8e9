// What a rank does at a safe point, and when it tested in vain.
#include "runtime/safe_point.h"

#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "progress/completion.h"
#include "progress/progress.h"
#include "runtime/mover.h"
#include "runtime/runtime.h"
#include "threads/this_thread.h"

namespace sterna::runtime {

namespace {
constinit MoveRank mover = nullptr;  // Written once at start of a node, before ranks run.

// A nap costs some 10 us of a processor: in the end 1 in 150.
constexpr std::uint32_t kEagerLooks = 64;
constexpr std::uint64_t kNapNs = 50'000;
constexpr std::uint32_t kNapsEach = 8;  // Of one length; then it doubles, so often at most.
constexpr std::uint32_t kNapDoublingsMax = 5;
// Between two polls of who tests in vain: about two microseconds where cycles are those of x86.
constexpr std::uint64_t kCyclesOfLooks = 5000;
}  // namespace

void set_mover(MoveRank move) noexcept {
  mover = move;
}

namespace {

// Where the rank goes at this safe point, or -1.
std::int32_t shuffle(RankContext& rank) noexcept {
  if (--rank.shuffle_left != 0) {
    return -1;
  }
  rank.shuffle_left = rank.shuffle_every;
  rank.shuffle_state = mix64(rank.shuffle_state + 1);
  const net::JobMap& job = rank.runtime->job();
  const auto node = static_cast<std::uint32_t>(rank.shuffle_state % job.node_count);
  return node == job.node_index ? -1 : static_cast<std::int32_t>(node);
}

}  // namespace

void start_shuffling(RankContext& rank, std::uint32_t every, std::uint64_t seed) noexcept {
  rank.shuffle_every = every;
  rank.shuffle_left = every;
  rank.shuffle_state = mix64(seed + rank.rank);
  rank.slot->move_request.store(kShuffleRequest, std::memory_order_relaxed);
}

void move_if_asked(RankContext& rank) noexcept {
  // Acquire pairs with the release of who asked: the order and what led to it.
  std::int32_t to_node = rank.slot->move_request.exchange(-1, std::memory_order_acquire);
  if (to_node == kShuffleRequest) {
    to_node = shuffle(rank);
  }
  if (to_node >= 0 && mover != nullptr) {
    mover(rank, static_cast<std::uint32_t>(to_node));
  }
  if (rank.shuffle_every != 0) {
    // Unless somebody has asked meanwhile. Relaxed: the rank tells itself.
    std::int32_t nobody = -1;
    rank.slot->move_request.compare_exchange_strong(nobody, kShuffleRequest,
                                                    std::memory_order_relaxed);
  }
}

void tested_in_vain(RankContext& rank) noexcept {
  if (rank.slot == nullptr) {
    // Who tests all the time need not poll each time. Who does so now and then has to: the launcher
    // is heard after so many rounds, whatever time they take.
    const std::uint64_t now = cycles();
    // Relaxed: a time for a decision that may be wrong.
    if (now - rank.polled_cycles.load(std::memory_order_relaxed) < kCyclesOfLooks &&
        rank.transport != nullptr && !rank.transport->may_find_more()) {
      return;
    }
    rank.polled_cycles.store(now, std::memory_order_relaxed);
    if (rank.progress->poll(threads::SchedulingPoint::enter) == 0 &&
        threads::self_if_any() != nullptr) {
      threads::yield();
    }
    return;
  }
  safe_point(rank);
  // Node pointers are read after the safe point: the rank may be elsewhere now.
  if (rank.progress->poll(threads::SchedulingPoint::switching) == 0) {
    threads::yield();
  }
}

void nap_until(RankContext& rank, std::uint64_t deadline_ns) noexcept {
  progress::Completion never;
  (void)never.wait_for(*rank.progress,
                       {.deadline_ns = deadline_ns, .is_interruptible = rank.slot != nullptr});
  safe_point(rank);
}

void wait_between_looks(RankContext& rank, std::uint32_t round,
                        std::uint64_t deadline_ns) noexcept {
  if (round < kEagerLooks) {
    tested_in_vain(rank);
    return;
  }
  const std::uint32_t doublings = std::min((round - kEagerLooks) / kNapsEach, kNapDoublingsMax);
  nap_until(rank, std::min(deadline_ns, now_ns() + (kNapNs << doublings)));
}

}  // namespace sterna::runtime
