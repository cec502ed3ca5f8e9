// The transport, as who progresses in the place of a program tells and asks it.
#include "net/transfer/absence.h"

#include "net/core.h"

namespace sterna::net {

std::atomic<std::uint32_t>* Absence::flag() const noexcept {
  return core_.absence_flag();
}
bool Absence::is_seen_by_all() const noexcept {
  return core_.rings_absent();
}

bool Absence::has_open(const Endpoint& endpoint) const noexcept {
  return core_.has_open(endpoint);
}

const KeptCount& Absence::kept() const noexcept {
  return core_.kept_;
}

bool Absence::has_work() const noexcept {
  return core_.has_work();
}

void Absence::poll_in_place(bool is_in_place) const noexcept {
  core_.is_in_place_ = is_in_place;
}

void Absence::leave_copies(bool are_left) const noexcept {
  core_.are_copies_left_ = are_left;
}

bool Absence::leaves_whole(std::uint32_t rank, std::uint64_t bytes) const noexcept {
  const std::uint32_t route = rank < core_.limits_.rank_count
                                  ? core_.ranks_[rank].route.load(std::memory_order_relaxed)
                                  : RankEntry::kNoRoute;
  if (route == RankEntry::kNoRoute || !core_.gates_[route].is_open()) {
    return false;
  }
  const Gate& gate = core_.gates_[route];
  return bytes > gate.eager_bytes() && gate.head_bytes() != 0 && !gate.is_direct() &&
         core_.is_left_whole(gate, bytes);
}

void Absence::has_nothing_open() const noexcept {
  core_.habits_.ended();
}

bool Absence::tells_by_absence() const noexcept {
  return core_.habits_.measures_absence();
}

bool Absence::is_about_to_wait() const noexcept {
  return core_.habits_.is_about_to_wait();
}

void Absence::has_left_receive(std::uint64_t now_ns) const noexcept {
  core_.habits_.has_left_receive(now_ns);
}

bool Absence::has_left() const noexcept {
  return core_.invitations_.has_left();
}

void Absence::leave_reads(bool are_left) const noexcept {
  core_.are_reads_left_ = are_left;
}

void Absence::was_away(std::uint64_t left_ns, std::uint64_t back_ns) const noexcept {
  core_.habits_.was_away(left_ns, back_ns);
}

}  // namespace sterna::net
