// The wires of the simulated network.
#include "net/drivers/sim/sim.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sterna::net {

SimNetwork::SimNetwork(const SimOptions& options)
    : options_{options}, random_{options.seed}, nodes_(options.node_count) {
  check(options.clock != nullptr, "a simulated network is given its clock");
  for (Node& node : nodes_) {
    node.last_ns.assign(options.node_count, 0);
    node.free_ns.assign(options.node_count, 0);
    node.in_flight.assign(options.node_count, 0);
    node.is_stalled.assign(options.node_count, false);
    node.stalled.resize(options.node_count);
    node.is_severed.assign(options.node_count, false);
    node.is_awaited.assign(options.node_count, false);
  }
}

bool SimNetwork::happens(std::uint32_t per_mille) {
  return per_mille != 0 && random_.below(1000) < per_mille;
}

/// One packet as the wire treats it.
void SimNetwork::put(std::uint32_t from, std::uint32_t to, std::vector<std::byte> bytes) {
  if (happens(options_.lost_per_mille)) {
    return;
  }
  const std::size_t size = bytes.size();
  if (happens(options_.twice_per_mille)) {
    arrive(to, {.from = from, .bytes = bytes}, size);
  }
  if (happens(options_.corrupt_per_mille)) {
    bytes[random_.below(size)] ^= static_cast<std::byte>(1 + random_.below(255));
  }
  arrive(to, {.from = from, .bytes = std::move(bytes)}, size);
}

void SimNetwork::arrive(std::uint32_t to, InFlight what, std::uint64_t bytes) {
  const std::uint32_t from = what.from;
  Node& node = nodes_[to];
  if (node.is_stalled[from]) {
    node.stalled[from].push_back(std::move(what));
    ++node.in_flight[from];
    return;
  }
  std::uint64_t& free_ns = node.free_ns[from];
  free_ns = std::max(free_ns, options_.clock->now_ns()) + options_.packet_ns +
            bytes * options_.ps_per_byte / 1000;
  std::uint64_t time = free_ns + options_.delay_ns_min;
  if (options_.delay_ns_max > options_.delay_ns_min) {
    time += random_.below(options_.delay_ns_max - options_.delay_ns_min);
  }
  if (options_.is_ordered || what.kind == InFlight::Kind::lost) {
    time = std::max(time, node.last_ns[from]);
  }
  node.last_ns[from] = std::max(time, node.last_ns[from]);
  ++node.in_flight[from];
  ++packet_count_;
  node.arriving.emplace(time, std::move(what));
}

bool SimNetwork::take(std::uint32_t node, InFlight& found) {
  const SpinGuard guard{lock_};
  Node& at = nodes_[node];
  if (at.arriving.empty() || at.arriving.begin()->first > options_.clock->now_ns()) {
    return false;
  }
  found = std::move(at.arriving.begin()->second);
  if (found.kind == InFlight::Kind::lost) {
    at.is_awaited[found.from] = false;
  }
  at.arriving.erase(at.arriving.begin());
  --at.in_flight[found.from];
  if (found.kind == InFlight::Kind::lost) {
    return_loans(node, found.from);
  }
  return true;
}

bool SimNetwork::has_way(std::uint32_t from, std::uint32_t to) const {
  const auto is_gone = [](const Node& node) { return node.is_lost || node.is_closed; };
  return !is_gone(nodes_[from]) && !is_gone(nodes_[to]) && !nodes_[to].is_severed[from];
}

SendState SimNetwork::send(std::uint32_t from, std::uint32_t to, std::span<const Piece> pieces) {
  std::vector<std::byte> bytes;
  for (const Piece& piece : pieces) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  check(!bytes.empty() && bytes.size() <= options_.packet_bytes_max &&
            pieces.size() <= kPacketPiecesMax,
        "a packet is of between 1 and packet_bytes_max bytes, in kPacketPiecesMax pieces at most");
  const SpinGuard guard{lock_};
  if (nodes_[from].is_awaited[to]) {
    return SendState::full;
  }
  if (!has_way(from, to)) {
    return SendState::closed;
  }
  if (nodes_[to].in_flight[from] >= options_.channel_packets_max) {
    return SendState::full;
  }
  put(from, to, std::move(bytes));
  return SendState::accepted;
}

void SimNetwork::lose(std::uint32_t node) {
  const SpinGuard guard{lock_};
  if (std::exchange(nodes_[node].is_lost, true)) {
    return;  // All have been told.
  }
  for (std::uint32_t to = 0; to < nodes_.size(); ++to) {
    if (to != node) {
      arrive(to, {.from = node, .kind = InFlight::Kind::lost}, 0);
    }
  }
}

void SimNetwork::stall(std::uint32_t one, std::uint32_t other, bool is_stalled) {
  const SpinGuard guard{lock_};
  for (const auto& [from, to] : {std::pair{one, other}, std::pair{other, one}}) {
    nodes_[to].is_stalled[from] = is_stalled;
    if (!is_stalled) {
      auto waiting = std::exchange(nodes_[to].stalled[from], {});
      nodes_[to].in_flight[from] -= static_cast<std::uint32_t>(waiting.size());
      for (InFlight& what : waiting) {
        const std::size_t bytes = what.bytes.size();
        arrive(to, std::move(what), bytes);
      }
    }
  }
}

void SimNetwork::sever_one(std::uint32_t from, std::uint32_t to) {
  Node& node = nodes_[to];
  node.is_severed[from] = true;
  node.is_stalled[from] = false;
  for (InFlight& what : std::exchange(node.stalled[from], {})) {
    node.arriving.emplace(options_.clock->now_ns(), std::move(what));
  }
  std::erase_if(node.arriving, [&](const auto& entry) {
    return entry.second.from == from && entry.second.kind != InFlight::Kind::read;
  });
  node.in_flight[from] = 0;
  break_reads(from, to);
  arrive(to, {.from = from, .kind = InFlight::Kind::lost}, 0);
}

void SimNetwork::sever(std::uint32_t one, std::uint32_t other) {
  const SpinGuard guard{lock_};
  sever_one(one, other);
  sever_one(other, one);
}

void SimNetwork::mend(std::uint32_t one, std::uint32_t other) {
  const SpinGuard guard{lock_};
  nodes_[other].is_severed[one] = nodes_[one].is_severed[other] = false;
  for (const auto& [at, from] : {std::pair{one, other}, std::pair{other, one}}) {
    Node& node = nodes_[at];
    if (node.is_awaited[from]) {  // It is not lost again.
      node.is_awaited[from] = false;
      node.in_flight[from] -= static_cast<std::uint32_t>(
          std::erase_if(node.arriving, [from = from](const auto& entry) {
            return entry.second.from == from && entry.second.kind == InFlight::Kind::lost;
          }));
    }
  }
}

bool SimNetwork::revive(std::uint32_t from, std::uint32_t to) {
  if (!is_severed(from, to)) {
    return true;
  }
  const SpinGuard guard{lock_};
  Node& node = nodes_[from];
  if (options_.revive_patience_ns == 0) {
    return false;
  }
  if (!node.is_awaited[to]) {
    node.is_awaited[to] = true;
    ++node.in_flight[to];
    node.arriving.emplace(options_.clock->now_ns() + options_.revive_patience_ns,
                          InFlight{.from = to, .kind = InFlight::Kind::lost});
  }
  return true;
}

bool SimNetwork::is_severed(std::uint32_t from, std::uint32_t to) {
  const SpinGuard guard{lock_};
  return nodes_[to].is_severed[from] || nodes_[to].is_lost || nodes_[to].is_closed;
}

bool SimNetwork::is_lost(std::uint32_t node) {
  const SpinGuard guard{lock_};
  return nodes_[node].is_lost;
}

bool SimNetwork::is_closed(std::uint32_t node) {
  const SpinGuard guard{lock_};
  return nodes_[node].is_closed;
}

void SimNetwork::close(std::uint32_t node) {
  const SpinGuard guard{lock_};
  nodes_[node].is_closed = true;
  for (std::uint32_t from = 0; from < nodes_.size(); ++from) {
    return_loans(from, node);
  }
}

void SimNetwork::inject(std::uint32_t from, std::uint32_t to, Packet packet) {
  const SpinGuard guard{lock_};
  arrive(to, {.from = from, .bytes = {packet.begin(), packet.end()}}, packet.size());
}

std::uint64_t SimNetwork::next_arrival_ns() {
  const SpinGuard guard{lock_};
  std::uint64_t next = kNever;
  for (const Node& node : nodes_) {
    if (!node.arriving.empty()) {
      next = std::min(next, node.arriving.begin()->first);
    }
  }
  return next;
}

}  // namespace sterna::net
