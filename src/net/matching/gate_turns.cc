// What messages on a way that is not copied directly turn out to cost, beside their packets: the
// turns of those that are announced, and the copies of those that come before their receive.
#include "net/matching/gate.h"

namespace sterna::net {

void Gate::begin_turn(std::uint32_t rank, std::uint64_t id, std::uint32_t head_bytes) noexcept {
  // Behind what waits here it would be a measure of that.
  if (!is_open() || is_direct() || shared_.clock == nullptr || !is_empty()) {
    return;
  }
  const std::uint64_t now_ns = shared_.clock->now_ns();
  const SpinGuard guard{cost_lock_};
  round_trip_.begin(rank, id, head_bytes, now_ns);
}

void Gate::end_turn(std::uint32_t rank, std::uint64_t id, bool is_measure) noexcept {
  if (!is_open() || is_direct() || shared_.clock == nullptr) {
    return;
  }
  const SpinGuard guard{cost_lock_};
  if (!round_trip_.end(rank, id) || !is_measure) {
    return;
  }
  const std::uint64_t now_ns = shared_.clock->now_ns();
  cost_->measured_turn(now_ns - std::min(now_ns, round_trip_.began_ns()), round_trip_.head_bytes());
  publish_cost();
}

bool Gate::is_copy_to_be_measured() noexcept {
  return is_open() && !is_direct() && lessons_.is_copy_next();
}

}  // namespace sterna::net
