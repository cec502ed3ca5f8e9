// The end of sampling: what the rounds of a way come to, and whether that is believed.
#include <algorithm>
#include <utility>

#include "net/costs/sampler.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kLaterLooks = 14;  // Looks after so many steps, as a power of two.

std::uint32_t bounded(double value) noexcept {
  return static_cast<std::uint32_t>(std::clamp(value, 0.0, 4e9));
}

}  // namespace

WayCosts CostSampler::sum_up() const noexcept {
  const auto ns = [&](Phase phase) {
    const Least& least = least_[static_cast<std::size_t>(phase)];
    return least.count == 0 ? 0.0 : static_cast<double>(least.ns.front());
  };
  const double small_bytes = kHeaderBytes + kSmallBytes;
  const double large_bytes = kHeaderBytes + large_bytes_;
  const double small_ns = (ns(Phase::small_burst) - ns(Phase::small_one)) / (kSamplePacketsMax - 1);
  const double large_ns =
      (ns(Phase::large_burst) - ns(Phase::large_pair)) / (kSamplePacketsMax - 2);
  const double ns_per_byte = (large_ns - small_ns) / (large_bytes - small_bytes);
  const double read_ns_per_byte =
      (ns(Phase::read_long) - ns(Phase::read_short)) / (kLongReadBytes - kShortReadBytes);
  // Zero, too, says that nothing was measured: a clock that stands still, or values that contradict
  // each other.
  return {
      .latency_ns = bounded(ns(Phase::small_one) / 2),
      .packet_ns = bounded(small_ns - small_bytes * ns_per_byte),
      .packet_ps_per_byte = bounded(ns_per_byte * 1000),
      .copy_ps_per_byte = bounded(ns(Phase::copy) * 1000 / kCopyBytes),
      .direct_latency_ns = bounded(
          read_ns_per_byte <= 0 ? 0 : ns(Phase::read_short) - kShortReadBytes * read_ns_per_byte),
      .direct_ps_per_byte = bounded(read_ns_per_byte * 1000)};
}

void CostSampler::give_up(const char* why) noexcept {
  log_.debug("the way to node {} by driver {} is not sampled: {}", peer_, ways_[way_].driver, why);
  way_ = kNoWay;
}

/// Within a host a way does not get slower than it has been, nor than on any machine that we know,
/// but for who else runs there now: what that makes of round trips is no reason for longer eager
/// messages, today or in jobs to come.
bool CostSampler::are_of_a_busy_machine(const WayCosts& costs) const noexcept {
  constexpr std::uint32_t kTimes = 4;
  constexpr std::uint32_t kTimesOfProfile = 8;
  const Way& way = ways_[way_];
  if (way.host != job_.host_of_node[job_.node_index]) {
    return false;
  }
  const std::uint32_t profile_ns = drivers_[way.driver]->capabilities().latency_ns;
  return costs.latency_ns / kTimesOfProfile > profile_ns ||
         (way.origin == CostOrigin::cached && costs.latency_ns / kTimes > way.costs.latency_ns);
}

/// Whoever is busy now may not be so then.
void CostSampler::try_later(const char* why) noexcept {
  const std::size_t way = way_;
  give_up(why);
  looks_ = std::max(looks_ + 1, kLaterLooks);
  if (looks_ < kLooksMax) {
    is_tried_[way] = false;
    steps_left_ = 1U << looks_;
  }
}

void CostSampler::conclude() noexcept {
  const WayCosts costs = sum_up();
  log_.debug(
      "node {} by driver {}: small {} and {} ns, large {} and {} ns, reads {} and {} ns, copy {} "
      "ns",
      peer_, ways_[way_].driver, least_[0].ns[0], least_[1].ns[0], least_[3].ns[0], least_[4].ns[0],
      least_[5].ns[0], least_[6].ns[0], least_[7].ns[0]);
  if (!are_plausible(costs)) {
    give_up("its times contradict each other");
    return;
  }
  if (are_of_a_busy_machine(costs)) {
    try_later("they are those of a busy machine, which has taken much less, or can");
    return;
  }
  know(way_, costs, CostOrigin::sampled);
  log_.debug("the way to node {} by driver {} was sampled: {}", peer_, ways_[way_].driver,
             gates_[peer_].explain(64 << 10));
  spread(std::exchange(way_, kNoWay), job_.node_index);
}

}  // namespace sterna::net
