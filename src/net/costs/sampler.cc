// Sampling of ways: which, their rounds, and the sums.
#include "net/costs/sampler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/rails/bond.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kSmallBytes = 16;  // Payload of a small packet.
constexpr std::uint32_t kShortReadBytes = 4 << 10;
constexpr std::uint32_t kLongReadBytes = 64 << 10;
constexpr std::uint32_t kCopyBytes = 64 << 10;  // Of the second-level cache.
constexpr std::uint32_t kWarmRounds = 8;
constexpr std::uint32_t kLargeBytesMin = 4 << 10;  // Payload of a large packet on slow networks.
// Messages wait behind the packets of a round: longer ones only where they are through so soon, or
// where an answer takes several times as long anyway.
constexpr std::uint64_t kRoundNsMax = 1'000'000;
constexpr std::uint64_t kRoundOfAnswer = 4;
constexpr std::uint32_t kRoundsMin = 8;     // Good ones of a phase, at least.
constexpr std::uint32_t kPauseSteps = 256;  // After a round that says nothing, then twice as many:
constexpr std::uint32_t kPausesMax = 6;     // the nodes have work, and shall do it.
constexpr std::uint32_t kWaitStepsMax = 1 << 20;  // For an answer.
constexpr std::uint32_t kLooksMax = 20;    // For ways in use, each after twice as many steps.
constexpr std::uint32_t kLaterLooks = 14;  // Looks after so many steps, as a power of two.

std::uint32_t bounded(double value) noexcept {
  return static_cast<std::uint32_t>(std::clamp(value, 0.0, 4e9));
}

}  // namespace

void CostSampler::Least::add(std::uint64_t value) noexcept {
  ++count;
  if (value < ns.back()) {
    ns.back() = value;
    std::ranges::sort(ns);
  }
}

bool CostSampler::Least::is_settled() const noexcept {
  return count >= kRoundsMin && ns.back() - ns.front() <= ns.front() / 8;
}

void CostSampler::add_way(std::uint32_t driver, bool is_rail, std::uint32_t node) {
  const std::string& host = job_.host_of_node[node];
  auto way = std::ranges::find_if(ways_, [&](const Way& known) {
    return known.driver == driver && known.is_rail == is_rail && known.host == host;
  });
  if (way == ways_.end()) {
    way = ways_.insert(
        ways_.end(),
        {.driver = driver, .is_rail = is_rail, .host = host, .nodes = {}, .costs = {}});
  }
  way->nodes.push_back(node);
}

void CostSampler::open(std::vector<Driver*> drivers, std::vector<std::string> names, Bond* bond) {
  drivers_ = std::move(drivers);
  names_ = std::move(names);
  bond_ = bond;
  const std::uint32_t self = job_.node_index;
  first_here_ = self;
  for (std::uint32_t node = 0; node < job_.node_count; ++node) {
    if (job_.host_of_node[node] == job_.host_of_node[self]) {
      first_here_ = std::min(first_here_, node);
    }
    if (node == self || !gates_[node].is_open()) {
      continue;
    }
    if (bond_ != nullptr && bond_->rail_count(node) > 1) {
      for (const Link::RailOpening& rail : bond_->rails(node)) {
        add_way(rail.index, true, node);
      }
    }
    const auto driver = static_cast<std::uint32_t>(
        std::ranges::find(drivers_, gates_[node].driver()) - drivers_.begin());
    add_way(driver, false, node);
  }
  is_tried_.assign(ways_.size(), false);
}

void CostSampler::know(std::size_t way, const WayCosts& costs, CostOrigin origin) noexcept {
  Way& known = ways_[way];
  known.costs = costs;
  known.origin = origin;
  is_tried_[way] = true;
  for (const std::uint32_t node : known.nodes) {
    if (known.is_rail) {
      bond_->know(node, static_cast<std::uint16_t>(known.driver), costs);
      gates_[node].take_cut(bond_->cut(node));
    } else {
      gates_[node].take_costs(costs, origin);
    }
  }
}

/// Of two hosts that with the lowest node measures, by that node.
bool CostSampler::is_mine(const Way& way) const noexcept {
  const std::uint32_t self = job_.node_index;
  return is_measuring_ && self == first_here_ &&
         (way.host == job_.host_of_node[self] || self < way.nodes.front());
}

/// A way that is in use and not known becomes the one that is measured.
bool CostSampler::find_way() noexcept {
  bool is_any_left = false;
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (is_tried_[i] || !is_mine(ways_[i])) {
      continue;
    }
    is_any_left = true;
    const auto& nodes = ways_[i].nodes;
    const auto peer = std::ranges::find_if(nodes, [&](std::uint32_t node) {
      return gates_[node].has_channel() && !gates_[node].is_lost();
    });
    if (peer != nodes.end()) {
      way_ = i;
      peer_ = *peer;
      is_tried_[i] = true;
      phase_ = Phase::small_one;
      least_ = {};
      large_bytes_ = std::min(kLargeBytesMin, large_bytes_max());
      tries_ = sent_ = spoiled_in_row_ = 0;
      peer_address_ = 0;
      if (bytes_ == nullptr) {
        bytes_ = std::make_unique<std::byte[]>(2 * kBufferBytes);
      }
      return true;
    }
  }
  steps_left_ = 1U << std::min(looks_, kLooksMax);
  is_active_ = (is_any_left || !untold_.empty()) && ++looks_ < kLooksMax;
  return false;
}

std::uint32_t CostSampler::step() noexcept {
  note_look();
  watched_polls_ -= watched_polls_ != 0 ? 1 : 0;
  if (!is_active_) {
    return 0;
  }
  if (steps_left_ != 0) {
    --steps_left_;
    return 0;
  }
  if (way_ == kNoWay) {
    tell_whom_messages_reach();
    if (!find_way()) {
      return 0;
    }
  }
  if (gates_[peer_].is_lost()) {
    give_up("its peer is lost");
    return 0;
  }
  switch (phase_) {
    case Phase::copy:
      copy_once();
      return 0;
    case Phase::done:
      conclude();
      return 0;
    default:
      return send_round();
  }
}

std::uint32_t CostSampler::packet_count() const noexcept {
  return phase_ == Phase::small_one ? 1 : phase_ == Phase::large_pair ? 2 : kSamplePacketsMax;
}

std::uint32_t CostSampler::payload_bytes() const noexcept {
  const bool is_small = phase_ == Phase::small_one || phase_ == Phase::small_burst;
  return is_small ? kSmallBytes : large_bytes_;
}

std::uint32_t CostSampler::large_bytes_max() const noexcept {
  return std::min<std::uint32_t>(gates_[peer_].packet_bytes_max() - kHeaderBytes, kBufferBytes);
}

/// After a round of `ns` that does not count.
void CostSampler::lengthen(std::uint64_t ns) noexcept {
  const std::uint64_t answer_ns = least_[static_cast<std::size_t>(Phase::small_one)].ns.front();
  const std::uint64_t bytes_ns = ns - std::min(ns, answer_ns);
  if (2 * bytes_ns <= std::max(kRoundNsMax, answer_ns / kRoundOfAnswer)) {
    large_bytes_ = std::min(2 * large_bytes_, large_bytes_max());
  }
}

/// Sends what is left of a round, or waits for its answer.
std::uint32_t CostSampler::send_round() noexcept {
  const std::uint32_t packets = packet_count();
  if (sent_ == packets) {
    if (++waited_steps_ > kWaitStepsMax) {
      give_up("its peer does not answer");
    }
    return 0;
  }
  FrameHeader header;
  header.kind = FrameKind::sample;
  header.source = job_.node_index;
  header.destination = peer_;
  header.tag = static_cast<std::int32_t>(packets);
  header.payload_bytes = payload_bytes();
  header.sequence = ways_[way_].is_rail ? ways_[way_].driver + 1 : 0;
  if (sent_ == 0) {
    ++round_;
    waited_steps_ = 0;
    is_round_spoiled_ = false;
    start_ns_ = clock_.now_ns();
  }
  header.cookie = round_;
  const Piece pieces[2] = {std::as_bytes(std::span{&header, 1}),
                           {bytes_.get(), header.payload_bytes}};
  std::uint32_t count = 0;
  SendState state = SendState::accepted;
  while (sent_ < packets && (state = send_sample(pieces)) == SendState::accepted) {
    ++sent_;
    ++count;
  }
  if (state == SendState::closed) {
    try_later("it is down");
  }
  return count;
}

SendState CostSampler::send_sample(std::span<const Piece> pieces) noexcept {
  const Way& way = ways_[way_];
  return way.is_rail ? bond_->try_send_by(peer_, static_cast<std::uint16_t>(way.driver), pieces)
                     : gates_[peer_].try_send(pieces);
}

void CostSampler::end_round(std::uint64_t ns) noexcept {
  sent_ = 0;
  ++tries_;
  Least& least = least_[static_cast<std::size_t>(phase_)];
  if (is_round_spoiled_) {
    steps_left_ = kPauseSteps << std::min(spoiled_in_row_++, kPausesMax);
  } else {
    spoiled_in_row_ = 0;
    least.add(ns);
  }
  if (phase_ == Phase::warm) {
    lengthen(ns);
  }
  if (phase_ == Phase::warm ? tries_ >= kWarmRounds : least.is_settled()) {
    next_phase();
  } else if (tries_ >= kTriesMax) {
    try_later("its times do not settle");
  }
}

/// Since it was last looked for packets, but for the poll that has found one.
std::uint64_t CostSampler::gap_ns() const noexcept {
  return clock_.now_ns() - looked_ns_;
}

void CostSampler::next_phase() noexcept {
  tries_ = 0;
  phase_ = static_cast<Phase>(static_cast<std::uint8_t>(phase_) + 1);
  if (phase_ == Phase::read_short) {
    Channel* const channel = gates_[peer_].is_direct() ? gates_[peer_].channel() : nullptr;
    // One that cannot read says so at the first try.
    if (channel == nullptr || peer_address_ == 0) {
      phase_ = Phase::copy;
    }
  }
}

/// What a peer has just written is in the caches of its processor, as messages are. Only reads:
/// they do no harm should the peer have given back that memory meanwhile.
void CostSampler::read_what_came() noexcept {
  Channel* const channel = gates_[peer_].channel();
  is_round_spoiled_ = false;
  const std::uint64_t bytes = phase_ == Phase::read_short ? kShortReadBytes : kLongReadBytes;
  const std::uint64_t start_ns = clock_.now_ns();
  const bool is_read =
      channel != nullptr && channel->read_remote(bytes_.get(), {peer_address_, bytes}).has_value();
  const std::uint64_t end_ns = clock_.now_ns();
  if (!is_read) {
    least_[static_cast<std::size_t>(Phase::read_short)] = {};
    phase_ = Phase::copy;
    return;
  }
  end_round(end_ns - start_ns);
}

void CostSampler::copy_once() noexcept {
  is_round_spoiled_ = false;
  const std::uint64_t start_ns = clock_.now_ns();
  std::memcpy(bytes_.get() + kBufferBytes, bytes_.get(), kCopyBytes);
  asm volatile("" : : "r"(bytes_.get()) : "memory");  // It is read, as far as the compiler knows.
  end_round(clock_.now_ns() - start_ns);
}

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
