// What Transport is told and asked of a program that is away, computing, by who progresses in its
// place (runtime/background/).
#include "net/core.h"
#include "net/transport.h"

namespace sterna::net {

std::atomic<std::uint32_t>* Transport::absence_flag() const noexcept {
  return core_->absence_flag();
}
bool Transport::rings_absent() const noexcept {
  return core_->rings_absent();
}

void Transport::poll_in_place(bool is_in_place) noexcept {
  core_->is_in_place_ = is_in_place;
}

void Transport::leave_copies(bool are_left) noexcept {
  core_->are_copies_left_ = are_left;
}

bool Transport::leaves_whole(std::uint32_t rank, std::uint64_t bytes) const noexcept {
  const std::uint32_t route = rank < core_->limits_.rank_count
                                  ? core_->ranks_[rank].route.load(std::memory_order_relaxed)
                                  : RankEntry::kNoRoute;
  if (route == RankEntry::kNoRoute || !core_->gates_[route].is_open()) {
    return false;
  }
  const Gate& gate = core_->gates_[route];
  return bytes > gate.eager_bytes() && gate.head_bytes() != 0 && !gate.is_direct() &&
         core_->is_left_whole(gate, bytes);
}

void Transport::has_nothing_open() noexcept {
  core_->wait_habit_.ended();
}

bool Transport::is_about_to_wait() const noexcept {
  const WaitHabit& habit = core_->wait_habit_;
  return habit.is_open() && habit.waits_at_once();
}

bool Transport::has_left() const noexcept {
  return core_->has_left();
}

void Transport::leave_reads(bool are_left) noexcept {
  core_->are_reads_left_ = are_left;
}

void Transport::was_away(std::uint64_t left_ns, std::uint64_t back_ns) noexcept {
  core_->wait_habit_.was_away(left_ns, back_ns);
}

}  // namespace sterna::net
