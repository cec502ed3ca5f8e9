// One short history of messages between simulated nodes, drawn from a seed: simulation_test.cc.
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
#include "net/simulation/sim_cluster.h"
#include "net/simulation/sim_moves.h"
#include "net/simulation/simulation_rails.h"

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

/// One history.
class History {
 public:
  explicit History(std::uint64_t seed)
      : random_{seed},
        cluster_{SimCluster::Rails{}, rails_of(random_), kRanks, &settings_},
        limits_{read_options(&settings_).value()} {
    // Ranks that are about to move when a node dies are an affair of migration.
    may_die_ = random_.chance(0.4);
  }

  void run() {
    const std::uint64_t steps = 50 + random_.below(400);
    for (std::uint64_t step = 0; step < steps; ++step) {
      take_step();
      expect_bounds();
    }
    finish();
    judge();
  }

 private:
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

  void take_step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        send(any_rank(), any_rank());
        break;
      case 4:
      case 5:
      case 6:
        receive(any_rank(), any_pattern());
        break;
      case 7:
        receive_masked(any_rank());
        break;
      case 8:
        receive_matched(any_rank());
        break;
      case 9:
        cancel();
        break;
      case 10:
        if (!may_die_) {
          moves_.step(any_rank());
        } else if (!lost_node_ && random_.chance(0.05)) {
          lose(static_cast<std::uint32_t>(random_.below(cluster_.nodes.size())));
        }
        break;
      default:
        cluster_.clock.advance(random_.below(1500));
        poll(static_cast<std::uint32_t>(random_.below(cluster_.nodes.size())));
    }
  }

  void poll(std::uint32_t node) {
    if (lost_node_ != node) {
      (void)cluster_.nodes[node]->poll();
    }
  }

  void send(std::uint32_t from, std::uint32_t to) {
    if (!is_here(from)) {
      return;
    }
    static constexpr std::array<std::size_t, 5> kSizes{8, 40, 300, 3000, kBytesMax};
    auto sent = std::make_unique<Sent>();
    const std::uint32_t serial = serials_[{from, to}]++;
    sent->from = from;
    sent->to = to;
    sent->bytes.resize(8 + random_.below(kSizes[random_.below(kSizes.size())]));
    for (std::size_t i = 0; i < sent->bytes.size(); ++i) {
      sent->bytes[i] = filling(from, serial, i);
    }
    std::memcpy(sent->bytes.data(), &from, 4);
    std::memcpy(sent->bytes.data() + 4, &serial, 4);
    sent->request.is_awaited = random_.chance(0.5);
    cluster_.node_of(from).send(endpoint(from), sent->request, {to, any_context(), any_tag()},
                                Buffer::of(sent->bytes.data(), sent->bytes.size()),
                                random_.chance(0.1) ? SendMode::synchronous : SendMode::standard);
    sent_.push_back(std::move(sent));
  }

  Received& new_receive(std::uint32_t at) {
    received_.push_back(std::make_unique<Received>());
    received_.back()->at = at;
    received_.back()->bytes.resize(kBytesMax + 8);
    return *received_.back();
  }
  static Buffer buffer_of(Received& received) {
    return Buffer::of(received.bytes.data(), received.bytes.size());
  }

  void receive(std::uint32_t at, const Pattern& pattern) {
    if (is_here(at)) {
      Received& received = new_receive(at);
      cluster_.node_of(at).receive(endpoint(at), received.request, pattern, buffer_of(received));
    }
  }
  void receive_masked(std::uint32_t at) {
    if (is_here(at)) {
      Received& received = new_receive(at);
      const Pattern pattern{random_.chance(0.5) ? kAnySource : any_rank(), any_context(),
                            any_tag()};
      cluster_.node_of(at).receive(endpoint(at), received.request,
                                   MaskedPattern{pattern, static_cast<std::uint32_t>(any_tag())},
                                   buffer_of(received));
    }
  }
  void receive_matched(std::uint32_t at) {
    Envelope found;
    if (!is_here(at)) {
      return;
    }
    Transport& node = cluster_.node_of(at);
    if (Message* const message = node.matched_probe(endpoint(at), any_pattern(), found)) {
      Received& received = new_receive(at);
      node.receive_matched(endpoint(at), received.request, *message, buffer_of(received));
    }
  }
  void cancel() {
    if (received_.empty()) {
      return;
    }
    Received& received = *received_[random_.below(received_.size())];
    if (is_here(received.at) && !received.request.done.done()) {
      (void)cluster_.node_of(received.at).cancel_receive(endpoint(received.at), received.request);
    }
  }

  /// Its process is killed; the launcher says so before the network does, or after, or much later.
  void lose(std::uint32_t node) {
    lost_node_ = node;
    const std::uint64_t when = random_.below(3);
    for (std::uint32_t other = 0; other < cluster_.nodes.size() && when == 0; ++other) {
      if (other != node) {
        cluster_.nodes[other]->lose_peer(node, "killed");
      }
    }
    for (const auto& wires : cluster_.networks) {
      wires->lose(node);
    }
    for (std::uint32_t other = 0; other < cluster_.nodes.size() && when == 1; ++other) {
      if (other != node) {
        cluster_.nodes[other]->lose_peer(node, "killed");
      }
    }
  }

  /// Messages that wait are bounded by the windows of who may have sent them.
  void expect_bounds() {
    const std::uint64_t most = std::uint64_t{kRanks} * limits_.eager_window_bytes +
                               limits_.local_window_bytes + kRanks * kBytesMax;
    for (const Endpoint* at : cluster_.endpoints) {
      ASSERT_LE(at->unexpected_bytes, most) << "rank " << at->rank;
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

  void finish() {
    moves_.finish();
    if (lost_node_) {
      for (std::uint32_t other = 0; other < cluster_.nodes.size(); ++other) {
        if (other != *lost_node_) {
          cluster_.nodes[other]->lose_peer(*lost_node_, "killed");
        }
      }
    }
    settle();
    for (const auto& received : received_) {
      if (is_alive(received->at) && !received->request.done.done()) {
        (void)cluster_.node_of(received->at)
            .cancel_receive(endpoint(received->at), received->request);
      }
    }
    settle();
    Envelope found;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (std::uint32_t context = 0; context < kContexts && is_alive(rank); ++context) {
        const Pattern any{kAnySource, context, kAnyTag};
        while (cluster_.node_of(rank).probe(endpoint(rank), any, found)) {
          receive(rank, {found.source, context, found.tag});
          settle();
        }
      }
    }
    settle();
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
      ASSERT_TRUE(sent->request.fault == Fault::none ||
                  (!is_between_living && sent->request.fault == Fault::peer_lost))
          << to_string(sent->request.fault);
      expected += is_between_living ? 1 : 0;
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
      }
    }
    for (std::uint32_t node = 0; node < cluster_.nodes.size() && !lost_node_; ++node) {
      ASSERT_EQ(cluster_.nodes[node]->statistics().frames_malformed, 0U);
      ASSERT_EQ(cluster_.nodes[node]->statistics().frames_dropped, 0U);
    }
  }

  Random random_;
  const Settings settings_ = settings_of();
  SimCluster cluster_;
  SimMoves moves_{cluster_, random_};
  const CoreOptions limits_;
  bool may_die_ = false;
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
