// What a rank does at a safe point, and when it tested in vain.
#include "runtime/safe_point.h"

#include "progress/progress.h"
#include "runtime/mover.h"
#include "threads/this_thread.h"

namespace sterna::runtime {

namespace {
constinit MoveRank mover = nullptr;  // Written once at start of a node, before ranks run.
}

void set_mover(MoveRank move) noexcept { mover = move; }

void move_if_asked(RankContext& rank) noexcept {
  // Acquire pairs with the release of who asked: the order and what led to it.
  const std::int32_t to_node = rank.slot->move_request.exchange(-1, std::memory_order_acquire);
  if (to_node >= 0 && mover != nullptr) {
    mover(rank, static_cast<std::uint32_t>(to_node));
  }
}

void tested_in_vain(RankContext& rank) noexcept {
  if (rank.slot == nullptr) {
    rank.progress->poll(threads::SchedulingPoint::enter);
    return;
  }
  safe_point(rank);
  // Node pointers are read after the safe point: the rank may be elsewhere now.
  if (rank.progress->poll(threads::SchedulingPoint::switching) == 0) {
    threads::yield();
  }
}

}  // namespace sterna::runtime
