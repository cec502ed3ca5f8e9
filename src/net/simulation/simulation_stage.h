// Where a simulated history takes place, and the judges of what happened: simulation_history.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"
#include "net/core.h"
#include "net/matching/matching.h"
#include "net/peer.h"
#include "net/simulation/rank_heaps.h"
#include "net/simulation/sim_cluster.h"
#include "net/simulation/sim_moves.h"
#include "net/simulation/simulation_rails.h"
#include "net/simulation/simulation_tally.h"
#include "net/transfer/absence.h"
#include "progress/progress.h"

namespace sterna::net::simulation {

inline constexpr std::uint32_t kRanks = 5;
inline constexpr std::uint32_t kContexts = 2;
inline constexpr std::int32_t kTags = 3;
inline constexpr std::size_t kBytesMax = 20'000;

struct Sent {
  std::uint32_t from, to;
  std::vector<std::byte> bytes;
  SendRequest request;
};
struct Received {
  std::uint32_t at;
  std::vector<std::byte> bytes;
  RecvRequest request;
};

inline std::byte filling(std::uint32_t source, std::uint32_t serial, std::size_t at) {
  return static_cast<std::byte>(mix64((std::uint64_t{source} << 32 | serial) + at));
}

inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

/// What a history has, and what must be true of it.
class Stage {
 protected:
  Stage(std::uint64_t seed, Tally& tally)
      : tally_{tally},
        random_{seed},
        kind_{patient_of(seed, lending_of(seed, quick_of(seed, kind_of(random_))))},
        settings_{settings_of(kind_)},
        is_fixed_{(random_.chance(0.3) || kind_.is_quick) && !kind_.is_moving},
        cluster_{SimCluster::Rails{is_fixed_}, kind_.rails, kRanks, &settings_, nullptr,
                 *memory::Heap::process(), heaps_.all()} {
    // Ranks that are about to move when a node dies are an affair of migration; and a node whose
    // wires are cut is not dead.
    may_die_ = kind_.wires != Kind::Wires::failing && random_.chance(0.1);
    const bool is_serial = is_fixed_ && (kind_.is_quick || random_.chance(0.5));
    for (const auto& node : cluster_.nodes) {
      node->serve_one_caller(is_serial);
      // Its program computes, by its habit.
      node->absence().leave_reads(is_fixed_ && random_.chance(0.5));
    }
    // Where several may call, who receives takes its turn to look from there.
    if (!is_serial && kind_.rails.front().has_short_way) {
      for (const auto& node : cluster_.nodes) {
        progress_.push_back(std::move(progress::Progress::open().value()));
        node->add_to(*progress_.back());
      }
    }
  }
  ~Stage() {
    for (std::size_t node = 0; node < progress_.size(); ++node) {
      cluster_.nodes[node]->remove_from(*progress_[node]);
    }
  }

  std::uint32_t any_rank() { return static_cast<std::uint32_t>(random_.below(kRanks)); }
  bool is_alive(std::uint32_t rank) const { return lost_node_ != cluster_.place[rank]; }
  /// It is somewhere, and may call.
  bool is_here(std::uint32_t rank) const { return is_alive(rank) && !moves_.is_moving(rank); }
  Endpoint& endpoint(std::uint32_t rank) { return *cluster_.endpoints[rank]; }
  std::int32_t any_tag() { return static_cast<std::int32_t>(random_.below(kTags)); }
  std::uint32_t any_context() { return static_cast<std::uint32_t>(random_.below(kContexts)); }
  Pattern any_pattern() {
    return {random_.chance(0.3) ? kAnySource : any_rank(), any_context(),
            random_.chance(0.3) ? kAnyTag : any_tag()};
  }

  /// All that messages of others take of the heap of a rank, their descriptions and the frames that
  /// came early included, is bounded by the windows. Beside it there is what the rank needs for its
  /// own requests, those that it keeps for others included, and recycled messages.
  void expect_bounds() {
    for (const Endpoint* at : cluster_.endpoints) {
      const std::uint64_t kept = at->kept != nullptr ? at->kept->message_count.value : 0;
      std::uint64_t most = kRankBytes + kRanks * std::uint64_t{kind_.window} + kind_.local +
                           at->free_message_count * kMessageBytes +
                           2 * at->pending_capacity * sizeof(PendingEntry) + kept * kKeptBytes;
      for (std::uint32_t i = 0; i < at->peer_bucket_count; ++i) {
        for (const Peer* peer = at->peers[i]; peer != nullptr; peer = peer->next_in_bucket) {
          const std::uint32_t used = peer->eager_received - peer->consumed;
          ASSERT_LE(used, kind_.window);
          is_near_bound_ = is_near_bound_ || used > kind_.window / 4 * 3;
          for (const EarlyFrame* early = peer->early; early != nullptr; early = early->next) {
            most += early_bytes_beside(frame_of(*early));
          }
        }
      }
      has_kept_ = has_kept_ || kept != 0;
      tally_.kept_most = std::max(tally_.kept_most, kept);
      const std::uint64_t live = heaps_.live_bytes(at->rank);
      ASSERT_LE(live, most) << "rank " << at->rank << " of " << at->message_count << " messages";
    }
  }

  void settle() {
    for (int rounds = 0; rounds < 1'000'000; ++rounds) {
      std::uint32_t count = 0;
      std::uint64_t next_ns = kNever;
      for (std::uint32_t node = 0; node < cluster_.nodes.size(); ++node) {
        if (lost_node_ != node) {
          count += cluster_.nodes[node]->poll();
          next_ns = std::min(next_ns, cluster_.nodes[node]->due_ns());
        }
      }
      for (const auto& wires : cluster_.networks) {
        next_ns = std::min(next_ns, wires->next_arrival_ns());
      }
      idle_rounds_ = count == 0 ? idle_rounds_ + 1 : 0;
      // What flies to a node that is lost never arrives.
      if (count == 0 && (next_ns == kNever || idle_rounds_ > 10'000)) {
        idle_rounds_ = 0;
        return;
      }
      if (count == 0) {
        cluster_.clock.advance(next_ns > cluster_.clock.now_ns() ? next_ns - cluster_.clock.now_ns()
                                                                 : 1000);
      }
    }
    FAIL() << "it does not come to rest";
  }

  void judge_message(const Received& received, std::size_t& count) {
    const RecvRequest& request = received.request;
    std::array<std::uint32_t, 2> head{};
    std::memcpy(head.data(), received.bytes.data(), sizeof head);
    const auto [source, serial] = head;
    ASSERT_EQ(source, request.envelope.source);
    for (std::size_t i = sizeof head; i < request.envelope.bytes; ++i) {
      ASSERT_EQ(received.bytes[i], filling(source, serial, i)) << "byte " << i;
    }
    int& times = seen_[{source, received.at, serial}];
    ASSERT_EQ(++times, 1) << "message " << serial << " of rank " << source << " came twice";
    ++count;
    // Of one envelope they come in the order in which they were sent and asked for. A masked
    // receive, posted before others, may take what they could not.
    std::int64_t& before =
        last_.try_emplace({source, received.at, request.envelope.context, request.envelope.tag}, -1)
            .first->second;
    ASSERT_GT(std::int64_t{serial}, before) << "rank " << received.at << " from " << source;
    before = serial;
  }

  void judge() {
    std::size_t count = 0;
    for (const auto& received : received_) {
      if (!is_alive(received->at)) {
        continue;
      }
      const RecvRequest& request = received->request;
      ASSERT_TRUE(request.done.done()) << "a receive of rank " << received->at << " never ends";
      if (request.fault == Fault::none) {
        judge_message(*received, count);
      } else if (request.fault != Fault::cancelled) {
        ASSERT_TRUE(lost_node_ && request.fault == Fault::peer_lost) << to_string(request.fault);
      }
    }
    std::size_t expected = 0;
    for (const auto& sent : sent_) {
      if (!is_alive(sent->from)) {
        continue;
      }
      ASSERT_TRUE(sent->request.done.done()) << "a send to rank " << sent->to << " never ends";
      const bool is_between_living = is_alive(sent->to);
      const Fault fault = sent->request.fault;
      ASSERT_TRUE(fault == Fault::none || fault == Fault::cancelled ||
                  (!is_between_living && fault == Fault::peer_lost))
          << to_string(fault);
      expected += is_between_living && fault == Fault::none ? 1 : 0;
    }
    std::size_t from_living = 0;
    for (const auto& [key, times] : seen_) {
      from_living += is_alive(std::get<0>(key)) ? 1 : 0;
    }
    ASSERT_EQ(from_living, expected) << "messages between living ranks";
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (is_alive(rank)) {
        check_matching(endpoint(rank));
        ASSERT_EQ(endpoint(rank).unexpected_bytes, 0U);
        ASSERT_EQ(endpoint(rank).message_count, 0U);
        ASSERT_EQ(endpoint(rank).pending_count, 0U);
        ASSERT_EQ(endpoint(rank).seeker_count, 0U);
        ASSERT_EQ(endpoint(rank).local_bytes, 0U);
        ASSERT_TRUE(endpoint(rank).kept == nullptr ||
                    endpoint(rank).kept->message_count == std::uint32_t{0});
      }
    }
    for (std::uint32_t node = 0; node < cluster_.nodes.size() && !lost_node_; ++node) {
      ASSERT_EQ(cluster_.nodes[node]->statistics().frames_malformed, 0U);
      ASSERT_EQ(cluster_.nodes[node]->statistics().frames_dropped, 0U);
    }
  }

  /// What a frame that came early takes beside what it counts against the window: eager ones and
  /// announcements count as messages, which take more; each further part brings a header.
  static std::uint64_t early_bytes_beside(const Frame& frame) {
    const FrameHeader& header = frame.header;
    const std::uint64_t empty = rounded(sizeof(EarlyFrame) + kHeaderBytes);
    switch (header.kind) {
      case FrameKind::eager:
      case FrameKind::head:
        return 0;
      case FrameKind::eager_more:
        return empty;
      case FrameKind::rendezvous:
        return (header.flags & (kFrameHeld | kFrameWithdrawn)) != 0 ? empty : 0;
      default:
        return empty + rounded(frame.payload.size());
    }
  }

  // Endpoint, lanes of receives, peers.
  static constexpr std::uint64_t kRankBytes = 16 << 10;
  static constexpr std::uint64_t kMessageBytes = 512;
  static constexpr std::uint64_t kKeptBytes = 1024;  // A message, and lanes.

  /// The classes of a heap are a quarter apart, the smallest 16 bytes.
  static constexpr std::uint64_t rounded(std::uint64_t bytes) { return bytes + bytes / 4 + 16; }

  void count() {
    tally_.messages += sent_.size();
    for (const auto& sent : sent_) {
      tally_.urgent += sent->request.target.priority != 0 ? 1 : 0;
      tally_.cancelled_sends += sent->request.fault == Fault::cancelled ? 1 : 0;
    }
    tally_.moves += static_cast<std::uint64_t>(moves_.begun_count());
    tally_.lost_nodes += lost_node_ ? 1 : 0;
    tally_.broken_wires += wires_.count();
    for (const auto& wires : cluster_.networks) {
      tally_.lent += wires->lent_count();
    }
    for (const auto& node : cluster_.nodes) {
      tally_.lent_twice += node->statistics().lent_bytes_twice;
      for (std::uint32_t other = 0; other < cluster_.nodes.size(); ++other) {
        for (const RailReport& rail : node->rails(other)) {
          tally_.sent_again += rail.sent_again;
        }
      }
    }
    tally_.near_bounds += is_near_bound_ ? 1 : 0;
    tally_.kept_histories += has_kept_ ? 1 : 0;
  }

  Tally& tally_;
  Random random_;
  const Kind kind_;
  const Settings settings_;
  const bool is_fixed_;
  const RankHeaps heaps_{kRanks, std::size_t{4} << 20};
  SimCluster cluster_;
  std::vector<std::unique_ptr<progress::Progress>> progress_;  // Of each node, or none.
  SimMoves moves_{cluster_, random_};
  Wires wires_{cluster_, random_};
  bool may_die_ = false;
  bool is_near_bound_ = false;
  bool has_kept_ = false;
  std::optional<std::uint32_t> lost_node_;
  int idle_rounds_ = 0;
  std::vector<std::unique_ptr<Sent>> sent_;
  std::vector<std::unique_ptr<Received>> received_;  // In the order of posting.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> serials_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int> seen_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t>, std::int64_t>
      last_;
};

}  // namespace sterna::net::simulation
