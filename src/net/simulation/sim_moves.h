// Ranks of a SimCluster that move, a step at a time, with any traffic between the steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {

class SimMoves {
 public:
  SimMoves(SimCluster& cluster, Random& random)
      : cluster_{cluster}, random_{random}, moving_(cluster.endpoints.size()) {}

  [[nodiscard]] bool is_moving(std::uint32_t rank) const { return moving_[rank].has_value(); }
  [[nodiscard]] int begun_count() const { return begun_count_; }

  /// Begins a move of the rank, or goes on with it: the destination expects it, then it is
  /// committed and installed; sometimes it is called off.
  void step(std::uint32_t rank) {
    Transport& source = cluster_.node_of(rank);
    if (!moving_[rank]) {
      const auto to = static_cast<std::uint32_t>(random_.below(cluster_.nodes.size()));
      if (to != cluster_.place[rank] && source.begin_leave(rank).has_value()) {
        moving_[rank] = Moving{to};
        ++begun_count_;
      }
      return;
    }
    Moving& moving = *moving_[rank];
    Transport& target = *cluster_.nodes[moving.to_node];
    if (!moving.is_expected) {
      target.expect(rank);
      moving.is_expected = true;
    } else if (!moving.is_committed && random_.chance(0.2)) {
      source.cancel_leave(rank);
      target.unexpect(rank, cluster_.place[rank]);
      moving_[rank].reset();
    } else if (!moving.is_committed) {
      source.commit_leave(rank, moving.to_node);
      moving.is_committed = true;
    } else {
      target.install(rank, cluster_.endpoints[rank]);
      cluster_.place[rank] = moving.to_node;
      moving_[rank].reset();
    }
  }

  /// All moves that were begun come to their ends.
  void finish() {
    for (std::uint32_t rank = 0; rank < moving_.size(); ++rank) {
      while (is_moving(rank)) {
        step(rank);
      }
    }
  }

 private:
  struct Moving {
    std::uint32_t to_node;
    bool is_expected = false;
    bool is_committed = false;
  };
  SimCluster& cluster_;
  Random& random_;
  std::vector<std::optional<Moving>> moving_;
  int begun_count_ = 0;
};

}  // namespace sterna::net
