// One short history of messages between simulated nodes, drawn from a seed: simulation_test.cc.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "net/simulation/simulation_stage.h"

namespace sterna::net::simulation {

/// One history.
class History : private Stage {
 public:
  History(std::uint64_t seed, Tally& tally) : Stage{seed, tally} {}

  void run() {
    const std::uint64_t steps = 50 + random_.below(400);
    for (std::uint64_t step = 0; step < steps; ++step) {
      take_step();
      ASSERT_NO_FATAL_FAILURE(expect_bounds());
    }
    finish();
    judge();
    count();
  }

 private:
  void take_step() {
    if (kind_.is_quick) {
      take_quick_step();
      return;
    }
    switch (random_.below(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
        send_some();
        break;
      case 4:
      case 5:
      case 6:
        receives() ? receive(any_rank(), any_pattern()) : send_some();
        break;
      case 7:
        receives() ? receive_masked(any_rank()) : send_some();
        break;
      case 8:
        receives() ? receive_matched(any_rank()) : send_some();
        break;
      case 9:
        cancel();
        break;
      case 10:
        befall();
        break;
      case 11:
        probe(any_rank());
        break;
      case 12:
        for (std::uint32_t at = 0; at < kRanks; ++at) {
          receive_short(at, any_pattern());
        }
        break;
      default:
        cluster_.clock.advance(random_.below(1500));
        poll(static_cast<std::uint32_t>(random_.below(cluster_.nodes.size())));
    }
  }

  /// As programs do that wait for each message: what has come is received, then the next packet is
  /// looked for; somebody polls now and then.
  void take_quick_step() {
    const std::uint32_t at = any_rank();
    if (kind_.is_moving && random_.chance(0.1)) {
      moves_.step(any_rank());
      return;
    }
    switch (random_.below(8)) {
      case 0:
      case 1:
        send(at, any_rank());
        break;
      case 2:
        poll(cluster_.place[at]);
        break;
      case 3:
        cluster_.clock.advance(random_.below(500));
        break;
      default:
        if (!receive_kept(at)) {
          receive_short(at, {kAnySource, any_context(), kAnyTag});
        }
    }
  }

  void poll(std::uint32_t node) {
    if (lost_node_ != node) {
      (void)cluster_.nodes[node]->poll();
    }
    if (kind_.is_lending && kind_.wires == Kind::Wires::failing && random_.chance(0.5)) {
      wires_.cut_behind_reads();
    }
  }

  bool receives() { return !kind_.is_flood || random_.chance(0.3); }

  /// Nodes die, wires break, ranks move, whatever happens in this history.
  void befall() {
    if (kind_.wires == Kind::Wires::failing && random_.chance(0.5)) {
      wires_.step();
    } else if (may_die_) {
      if (!lost_node_ && random_.chance(0.05)) {
        lose(static_cast<std::uint32_t>(random_.below(cluster_.nodes.size())));
      }
    } else if (!is_fixed_) {
      moves_.step(any_rank());
    }
  }

  void send_some() {
    const std::uint32_t from = any_rank();
    const std::uint32_t to = any_rank();
    for (std::uint64_t left = kind_.is_flood ? 1 + random_.below(8) : 1; left > 0; --left) {
      send(from, to);
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
    sent->bytes.resize(8 +
                       random_.below(kSizes[kind_.is_short ? random_.below(2) : random_.below(5)]));
    for (std::size_t i = 0; i < sent->bytes.size(); ++i) {
      sent->bytes[i] = filling(from, serial, i);
    }
    std::memcpy(sent->bytes.data(), &from, 4);
    std::memcpy(sent->bytes.data() + 4, &serial, 4);
    sent->request.is_awaited = random_.chance(0.5);
    const auto priority =
        static_cast<std::uint8_t>(random_.chance(0.2) ? random_.below(kPriorityMax + 1) : 0);
    cluster_.node_of(from).send(endpoint(from), sent->request,
                                {to, any_context(), any_tag(), priority},
                                Buffer::of(sent->bytes.data(), sent->bytes.size()),
                                random_.chance(0.1) ? SendMode::synchronous : SendMode::standard);
    sent_.push_back(std::move(sent));
  }

  Received& new_receive(std::uint32_t at) {
    received_.push_back(std::make_unique<Received>());
    received_.back()->at = at;
    received_.back()->bytes.resize(kBytesMax + 8);
    received_.back()->request.may_be_written = random_.chance(0.5);
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
  /// What a probe has seen, a receive of its kind gets, if no other one does.
  void probe(std::uint32_t at) {
    Envelope found;
    if (is_here(at) && cluster_.node_of(at).probe(endpoint(at), any_pattern(), found) &&
        ++tally_.probed != 0 && random_.chance(0.5)) {
      receive(at, {found.source, found.context, found.tag});
    }
  }
  /// Where all that must be so is so, the bytes of the next packet.
  void receive_short(std::uint32_t at, const Pattern& pattern) {
    if (!is_here(at)) {
      return;
    }
    auto received = std::make_unique<Received>();
    received->at = at;
    received->bytes.resize(kBytesMax + 8);
    RecvRequest& request = received->request;
    if (cluster_.node_of(at).try_receive_short(endpoint(at), pattern, received->bytes,
                                               request.envelope)) {
      request.done.reset();
      request.done.complete_alone();
      ++tally_.short_receives;
      received_.push_back(std::move(received));
    }
  }
  void cancel() {
    if (random_.chance(0.5)) {
      cancel_send();
      return;
    }
    if (received_.empty()) {
      return;
    }
    Received& received = *received_[random_.below(received_.size())];
    if (is_here(received.at) && !received.request.done.done()) {
      (void)cluster_.node_of(received.at).cancel_receive(endpoint(received.at), received.request);
    }
  }

  void cancel_send() {
    if (sent_.empty()) {
      return;
    }
    Sent& sent = *sent_[random_.below(sent_.size())];
    if (is_here(sent.from)) {
      (void)cluster_.node_of(sent.from).cancel_send(endpoint(sent.from), sent.request);
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

  void finish() {
    wires_.finish();
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
    while (receive_rest()) {
      settle();
    }
  }
  /// What the probe does not see here it asks for elsewhere.
  bool probe_at_last(std::uint32_t rank, const Pattern& pattern, Envelope& found) {
    bool is_seen = false;
    for (int i = 0; i < 3 && !is_seen; ++i) {
      is_seen = cluster_.node_of(rank).probe(endpoint(rank), pattern, found);
      settle();
    }
    return is_seen;
  }
  /// A receive for each message that a probe sees; false: none was seen.
  bool receive_rest() {
    bool is_any = false;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (std::uint32_t context = 0; context < kContexts && is_alive(rank); ++context) {
        Envelope found;
        const Pattern any{kAnySource, context, kAnyTag};
        while (probe_at_last(rank, any, found)) {
          receive(rank, {found.source, context, found.tag});
          settle();
          is_any = true;
        }
      }
    }
    return is_any;
  }
  /// A receive for one message that a probe sees.
  bool receive_kept(std::uint32_t rank) {
    for (std::uint32_t context = 0; context < kContexts && is_here(rank); ++context) {
      Envelope found;
      if (cluster_.node_of(rank).probe(endpoint(rank), {kAnySource, context, kAnyTag}, found)) {
        receive(rank, {found.source, context, found.tag});
        return true;
      }
    }
    return false;
  }
};

}  // namespace sterna::net::simulation
