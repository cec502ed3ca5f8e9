// Sampling of ways: which, and their rounds.
#include "net/costs/sampler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/rails/bond.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kWarmRounds = 8;
constexpr std::uint32_t kLargeBytesMin = 4 << 10;  // Payload of a large packet on slow networks.
// Messages wait behind the packets of a round: longer ones only where they are through so soon, or
// where an answer takes several times as long anyway.
constexpr std::uint64_t kRoundNsMax = 250'000;
constexpr std::uint64_t kRoundOfAnswer = 4;
constexpr std::uint64_t kRests = 4;           // Rounds have a fifth of the time.
constexpr std::uint32_t kRoundsMin = 8;     // Good ones of a phase, at least.
constexpr std::uint32_t kPauseSteps = 256;  // After a round that says nothing, then twice as many:
constexpr std::uint32_t kPausesMax = 6;     // the nodes have work, and shall do it.
constexpr std::uint32_t kWaitStepsMax = 1 << 20;  // For an answer.
constexpr std::uint64_t kFullNsMax = 50'000'000;  // Until it is between two messages.

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

/// Of which is known what is on its way: a rail, or a link as a whole.
bool CostSampler::is_of_link(const Way& way) const noexcept {
  return way.is_rail || drivers_[way.driver] == bond_;
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
      rest_until_ns_ = last_ns_ = 0;
      full_since_ns_ = kNever;
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
  if (sent_ == 0 && clock_.now_ns() < rest_until_ns_) {
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

/// After a round of `ns`, for as many times as long as it has held up messages.
void CostSampler::rest(std::uint64_t ns) noexcept {
  const std::uint64_t answer_ns = least_[static_cast<std::size_t>(Phase::small_one)].ns.front();
  const std::uint64_t held_ns = ns - std::min(ns, answer_ns);
  const std::uint64_t rest_ns = held_ns < kHeldNsMin ? 0 : kRests * std::min(held_ns, kRoundNsMax);
  last_ns_ = std::min(ns, kRoundNsMax);
  rest_until_ns_ = clock_.now_ns() + rest_ns + (is_of_link(ways_[way_]) ? some_ns() : 0);
}

/// Who begins as soon as messages let him is always in step with them, and each of his rounds meets
/// the same one.
std::uint64_t CostSampler::some_ns() noexcept {
  return random_.below(2 * last_ns_ + 1);
}

/// Sends what is left of a round, or waits for its answer.
std::uint32_t CostSampler::send_round() noexcept {
  const std::uint32_t packets = packet_count();
  const auto rails =
      ways_[way_].is_rail ? static_cast<std::uint16_t>(ways_[way_].driver) : Link::kAllRails;
  if (sent_ == 0 && is_of_link(ways_[way_]) && !bond_->is_through(peer_, rails)) {
    wait_for_messages();
    return 0;
  }
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
    full_since_ns_ = kNever;
    is_round_spoiled_ = is_round_late_ = false;
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

/// Behind a message a round would say how long that is.
void CostSampler::wait_for_messages() noexcept {
  const std::uint64_t now_ns = clock_.now_ns();
  full_since_ns_ = std::min(full_since_ns_, now_ns);
  rest_until_ns_ = now_ns + some_ns();
  if (now_ns - full_since_ns_ > kFullNsMax) {
    full_since_ns_ = kNever;
    try_later("messages fill it");
  }
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
  } else if (!is_round_late_) {
    spoiled_in_row_ = 0;
    least.add(ns);
  }
  if (phase_ == Phase::warm) {
    lengthen(ns);
  }
  rest(ns);
  if (phase_ == Phase::warm ? tries_ >= kWarmRounds : least.is_settled()) {
    next_phase();
  } else if (tries_ >= kTriesMax) {
    try_later("its times do not settle");
  } else if (tries_ == kTriesMax / 2) {
    least = {};  // A link learns from its packets, too: it may not do again what it did at first.
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
  is_round_spoiled_ = is_round_late_ = false;
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
  is_round_spoiled_ = is_round_late_ = false;
  const std::uint64_t start_ns = clock_.now_ns();
  std::memcpy(bytes_.get() + kBufferBytes, bytes_.get(), kCopyBytes);
  asm volatile("" : : "r"(bytes_.get()) : "memory");  // It is read, as far as the compiler knows.
  end_round(clock_.now_ns() - start_ns);
}

}  // namespace sterna::net
