// The nodes of a job as the machine of a scheduling engine: a place for each node, with a processor
// for each of its workers, below places for the hosts, below a network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "balance/load.h"
#include "topology/topology.h"

namespace sterna::balance {

/// All places of a kind in the topology are alike: a node has processors without workers where
/// others have more, and so have hosts.
class Network {
 public:
  explicit Network(std::span<const NodeCapacity> nodes);

  /// For Topology::synthetic: "network:2 arity:16 package:4 pu:8".
  [[nodiscard]] const std::string& topology() const noexcept { return topology_; }
  /// The kind of place that is a node.
  [[nodiscard]] topology::PlaceKind node_kind() const noexcept { return node_kind_; }
  /// Indices of the processors that have a worker, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& processors() const noexcept {
    return processors_;
  }
  [[nodiscard]] std::uint32_t worker_count(std::uint32_t node) const noexcept {
    return worker_counts_[node];
  }
  [[nodiscard]] std::uint32_t first_processor(std::uint32_t node) const noexcept {
    return slot_of_node_[node] * width_;
  }
  [[nodiscard]] std::uint32_t node_of_processor(std::uint32_t processor) const noexcept {
    return node_of_slot_[processor / width_];
  }
  /// The nodes of each host.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& hosts() const noexcept {
    return hosts_;
  }

 private:
  void count_workers(std::span<const NodeCapacity> nodes);
  void lay_out(std::uint32_t node_count);

  std::vector<std::vector<std::uint32_t>> hosts_;
  std::vector<std::uint32_t> worker_counts_;  // By node; 0: it does not answer.
  std::vector<std::uint32_t> slot_of_node_;
  std::vector<std::uint32_t> node_of_slot_;
  std::vector<std::uint32_t> processors_;
  std::uint32_t width_ = 1;  // Processors of a node in the topology.
  topology::PlaceKind node_kind_ = topology::PlaceKind::machine;
  std::string topology_;
};

}  // namespace sterna::balance
