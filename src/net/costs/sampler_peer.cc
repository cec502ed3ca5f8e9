// The other side of sampling: answers, and figures that others have measured.
#include <algorithm>
#include <cstring>
#include <utility>

#include "net/costs/sampler.h"
#include "net/rails/bond.h"

namespace sterna::net {
namespace {

// After a question: the next one comes soon; behind a long round after its rest.
constexpr std::uint32_t kWatchedPolls = 1024;
constexpr std::uint32_t kWatchedPollsOfRest = 16 << 10;
// For how long the two sides together have not looked before what came to them: more says how often
// they look, not what the way takes.
constexpr std::uint64_t kGapsMaxNs = 600;      // Or less than
constexpr std::uint64_t kGapsMaxQuarters = 3;  // of the round.

}  // namespace

/// How the file names the way.
CostsEntry CostSampler::entry_of(const Way& way) const {
  // A rail's packets have a link's header, and nothing is copied directly over it.
  return {.driver = way.is_rail ? "link(" + names_[way.driver] + ")" : names_[way.driver],
          .host = way.host == job_.host_of_node[job_.node_index] ? "" : way.host,
          .packet_bytes_max = drivers_[way.driver]->capabilities().packet_bytes_max,
          .at_s = 0,
          .costs = way.costs};
}

void CostSampler::know(std::span<const CostsEntry> entries, std::uint64_t now_s) noexcept {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const CostsEntry wanted = entry_of(ways_[i]);
    const auto found = std::ranges::find_if(
        entries, [&](const CostsEntry& entry) { return entry.is_same_way(wanted); });
    if (found != entries.end()) {
      know(i, found->costs, CostOrigin::cached);
      is_tried_[i] = now_s - found->at_s < kCostsRestSeconds;
    }
  }
}

std::vector<CostsEntry> CostSampler::sampled(std::uint64_t at_s) const {
  std::vector<CostsEntry> entries;
  for (const Way& way : ways_) {
    if (way.origin == CostOrigin::sampled && job_.node_index == first_here_) {
      entries.push_back(entry_of(way));
      entries.back().at_s = at_s;
    }
  }
  return entries;
}

/// `way` was measured, or told by `from_node`: others may need it, too.
void CostSampler::spread(std::size_t way, std::uint32_t from_node) noexcept {
  const std::string& here = job_.host_of_node[job_.node_index];
  for (std::uint32_t node = 0; node < job_.node_count; ++node) {
    const std::string& host = job_.host_of_node[node];
    if (node != job_.node_index && node != from_node && (host == here || host == ways_[way].host)) {
      untold_.push_back({way, node});
    }
  }
  if (way_ == kNoWay) {
    steps_left_ = looks_ = 0;
  }
  is_active_ = true;
}

void CostSampler::tell_whom_messages_reach() noexcept {
  std::erase_if(untold_, [&](const Untold& untold) {
    const Gate& gate = gates_[untold.node];
    if (gate.has_channel() && !gate.is_lost()) {
      tell(untold.node, ways_[untold.way]);
    }
    return gate.has_channel() || gate.is_lost();
  });
}

void CostSampler::tell(std::uint32_t node, const Way& way) noexcept {
  const bool is_other_end = job_.host_of_node[node] == way.host;
  FrameHeader header;
  header.kind = FrameKind::sample_result;
  header.source = job_.node_index;
  header.destination = node;
  header.cookie = is_other_end ? job_.node_index : way.nodes.front();
  header.sequence = way.driver;
  header.context = way.is_rail ? 1 : 0;
  send(node, header, std::as_bytes(std::span{&way.costs, 1}));
}

void CostSampler::send(std::uint32_t node, const FrameHeader& given,
                       std::span<const std::byte> payload) noexcept {
  FrameHeader header = given;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  const Piece pieces[2] = {std::as_bytes(std::span{&header, 1}), payload};
  (void)gates_[node].send(pieces);  // Lost: then nobody there waits for it.
}

void CostSampler::accept(std::uint32_t from_node, const Frame& frame) noexcept {
  switch (frame.header.kind) {
    case FrameKind::sample:
      answer(from_node, frame);
      break;
    case FrameKind::sample_answer:
      take_answer(from_node, frame);
      break;
    default:
      take_result(from_node, frame);
      break;
  }
}

/// Takes the bytes as a receive would, in any order, and answers the last packet.
void CostSampler::answer(std::uint32_t from_node, const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  if (taken_bytes_ == nullptr) {
    taken_bytes_ = std::make_unique<std::byte[]>(kBufferBytes);
    asked_.resize(job_.node_count);
  }
  Asked& asked = asked_[from_node];
  if (header.cookie != asked.round) {
    asked.round = header.cookie;
    asked.taken = 0;
    asked.gap_ns = watched_polls_ == 0 ? kNever : gap_ns();
    watched_polls_ = kWatchedPolls;
    asked.began_ns = clock_.now_ns();
  }
  const std::size_t offset = asked.taken * frame.payload.size() % kBufferBytes;
  std::memcpy(taken_bytes_.get() + offset, frame.payload.data(),
              std::min(frame.payload.size(), kBufferBytes - offset));
  if (++asked.taken != static_cast<std::uint32_t>(header.tag)) {
    return;
  }
  if (clock_.now_ns() - asked.began_ns > kHeldNsMin / 2) {
    watched_polls_ = kWatchedPollsOfRest;
  }
  const SampleAnswer told{.address = reinterpret_cast<std::uintptr_t>(taken_bytes_.get()),
                          .gap_ns = asked.gap_ns};
  FrameHeader reply;
  reply.kind = FrameKind::sample_answer;
  reply.source = job_.node_index;
  reply.destination = from_node;
  reply.cookie = header.cookie;
  const auto rail = static_cast<std::uint16_t>(header.sequence - 1);
  const bool is_of_rail =
      header.sequence != 0 && header.sequence <= drivers_.size() && bond_ != nullptr;
  // Behind messages the answer says how long those are.
  const bool is_late = bond_ != nullptr &&
                       !bond_->is_through(from_node, is_of_rail ? rail : Link::kAllRails);
  const bool has_slept = std::exchange(asked.sleeps, sleeps_) != sleeps_;
  reply.context = has_slept ? kSampleSlept : is_late ? kSampleLate : 0;
  const std::span<const std::byte> payload = std::as_bytes(std::span{&told, 1});
  reply.payload_bytes = static_cast<std::uint32_t>(payload.size());
  const Piece pieces[2] = {std::as_bytes(std::span{&reply, 1}), payload};
  // Of a rail, by the same one; if it has no room, by any.
  if (!is_of_rail || bond_->try_send_by(from_node, rail, pieces) != SendState::accepted) {
    send(from_node, reply, payload);
  }
}

void CostSampler::take_answer(std::uint32_t from_node, const Frame& frame) noexcept {
  if (way_ == kNoWay || from_node != peer_ || frame.header.cookie != round_ ||
      phase_ >= Phase::copy || sent_ != packet_count()) {
    return;  // To a round that was given up, or a stranger's.
  }
  const std::uint64_t ns = clock_.now_ns() - start_ns_;
  SampleAnswer told;
  std::memcpy(&told, frame.payload.data(), sizeof told);
  peer_address_ = told.address;
  if (told.gap_ns == kNever && tries_ < kTriesMax / 2) {
    ++tries_;  // From now on it looks at the clock: once more, at once.
    sent_ = 0;
    return;
  }
  // Neither side can have been late by more than the time in which it did not poll.
  const std::uint64_t gaps_ns = gap_ns() + std::min(told.gap_ns, kNever / 2);
  is_round_late_ = frame.header.context == kSampleLate;
  is_round_spoiled_ = is_round_spoiled_ || frame.header.context == kSampleSlept ||
                      (gaps_ns > kGapsMaxNs && gaps_ns > ns / 4 * kGapsMaxQuarters);
  if (phase_ < Phase::read_short) {
    end_round(ns);
  } else {
    read_what_came();
  }
}

void CostSampler::take_result(std::uint32_t from_node, const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  WayCosts costs;
  if (!decode_costs(frame.payload, costs)) {
    return;
  }
  const std::string& host = job_.host_of_node[header.cookie];
  const auto way = std::ranges::find_if(ways_, [&](const Way& candidate) {
    return candidate.driver == header.sequence && candidate.host == host &&
           candidate.is_rail == (header.context != 0);
  });
  if (way == ways_.end() || way->origin == CostOrigin::sampled) {
    return;  // Not ours, or another has told us.
  }
  const auto index = static_cast<std::size_t>(way - ways_.begin());
  know(index, costs, CostOrigin::sampled);
  spread(index, from_node);
}

}  // namespace sterna::net
