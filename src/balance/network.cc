// See network.h.
#include "balance/network.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace sterna::balance {
namespace {

// A decision is to take milliseconds: of nodes with more workers each place stands for several.
constexpr std::uint32_t kWorkersMax = 64;
constexpr std::uint32_t kProcessorsMax = 8192;
// Wider levels have groups, as the run queues of one machine do.
constexpr std::uint32_t kArity = 16;

}  // namespace

Network::Network(std::span<const NodeCapacity> nodes) {
  std::map<std::uint32_t, std::size_t> index_of_host;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    const auto [found, is_new] = index_of_host.try_emplace(nodes[node].host, hosts_.size());
    if (is_new) {
      hosts_.emplace_back();
    }
    hosts_[found->second].push_back(node);
  }
  if (hosts_.size() == 1) {
    // A network of one machine distributes nothing: its nodes are what machines are elsewhere.
    hosts_.assign(nodes.size(), {});
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      hosts_[node] = {node};
    }
  }
  count_workers(nodes);
  lay_out(static_cast<std::uint32_t>(nodes.size()));
}

void Network::count_workers(std::span<const NodeCapacity> nodes) {
  const auto node_count = static_cast<std::uint32_t>(std::max<std::size_t>(nodes.size(), 1));
  const auto most = static_cast<double>(std::clamp(kProcessorsMax / node_count, 1U, kWorkersMax));
  double fastest = 0.0;
  for (const NodeCapacity& node : nodes) {
    fastest = std::max(fastest, node.speed);
  }
  const double scale = fastest > most ? most / fastest : 1.0;
  for (const NodeCapacity& node : nodes) {
    // Whoever answers has one at least; its share of a scale may be less.
    const auto workers = static_cast<std::uint32_t>(std::lround(node.speed * scale));
    worker_counts_.push_back(node.speed < kSpeedMin ? 0 : std::max(workers, 1U));
    width_ = std::max(width_, worker_counts_.back());
  }
}

void Network::lay_out(std::uint32_t node_count) {
  std::size_t nodes_per_host = 1;
  for (const auto& host : hosts_) {
    nodes_per_host = std::max(nodes_per_host, host.size());
  }
  slot_of_node_.resize(node_count);
  node_of_slot_.resize(hosts_.size() * nodes_per_host);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    for (std::size_t i = 0; i < hosts_[host].size(); ++i) {
      const std::uint32_t node = hosts_[host][i];
      const auto slot = static_cast<std::uint32_t>(host * nodes_per_host + i);
      slot_of_node_[node] = slot;
      node_of_slot_[slot] = node;
      for (std::uint32_t worker = 0; worker < worker_counts_[node]; ++worker) {
        processors_.push_back(slot * width_ + worker);
      }
    }
  }
  const bool has_hosts = nodes_per_host > 1;
  node_kind_ = has_hosts ? topology::PlaceKind::package : topology::PlaceKind::machine;
  topology_ = fmt::format("network:{} arity:{} {}pu:{}", hosts_.size(), kArity,
                          has_hosts ? fmt::format("package:{} ", nodes_per_host) : "", width_);
}

}  // namespace sterna::balance
