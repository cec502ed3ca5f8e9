// Several nodes with their ranks in one process, over a simulated network: what the tests of the
// transport drive, from a seed, on one kernel thread.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "memory/heap.h"
#include "net/drivers/sim/sim.h"
#include "net/endpoint.h"
#include "net/transport.h"

namespace sterna::net {

/// Rank r starts on node r % node_count.
class SimCluster {
 public:
  /// One network a rail, three at most; nodes and hosts are those of the first. `heaps`: of the
  /// ranks; else all are in `heap`. Of ranks that are fixed the last of a node is its program.
  struct Rails {
    explicit Rails(bool are_fixed = false) : are_ranks_fixed{are_fixed} {}
    bool are_ranks_fixed;
  };
  SimCluster(const SimOptions& options, std::uint32_t rank_count,
             const Settings* settings = nullptr, const Log* log = nullptr,
             memory::Heap& heap = *memory::Heap::process(), Rails how = Rails{})
      : SimCluster{how, {options}, rank_count, settings, log, heap} {}
  SimCluster(Rails how, const std::vector<SimOptions>& rails, std::uint32_t rank_count,
             const Settings* settings = nullptr, const Log* log = nullptr,
             memory::Heap& heap = *memory::Heap::process(),
             std::span<memory::Heap* const> heaps = {}) {
    const SimOptions& options = rails.front();
    std::vector<SimNetwork*> wires;
    for (SimOptions rail : rails) {
      rail.node_count = options.node_count;
      rail.clock = &clock;
      rail.direct_clock = rail.is_direct_timed ? &clock : nullptr;
      networks.push_back(std::make_unique<SimNetwork>(rail));
      wires.push_back(networks.back().get());
    }
    network = wires.front();
    JobMap job;
    job.node_count = options.node_count;
    job.rank_count = rank_count;
    for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
      job.node_of_rank.push_back(rank % options.node_count);
      endpoints.push_back(create_endpoint(heaps.empty() ? heap : *heaps[rank], rank));
      endpoints.back()->is_fixed = how.are_ranks_fixed;
    }
    job.host_of_node = options.hosts;
    job.host_of_node.resize(options.node_count, "here");
    static const DriverChoice kDrivers[] = {
        {.entry = &kSimDriver}, {.entry = &kSecondSimDriver}, {.entry = &kThirdSimDriver}};
    for (job.node_index = 0; job.node_index < job.node_count; ++job.node_index) {
      bootstraps.push_back(std::make_unique<SimBootstrap>(wires, job));
      auto opened = Transport::open({.bootstrap = bootstraps.back().get(),
                                     .drivers = std::span{kDrivers}.first(rails.size()),
                                     .clock = &clock,
                                     .log = log,
                                     .settings = settings});
      check(opened.has_value(), "a simulated node opens");
      nodes.push_back(std::move(opened.value()));
    }
    place = job.node_of_rank;
    for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
      nodes[place[rank]]->install(rank, endpoints[rank]);
    }
  }
  ~SimCluster() {
    nodes.clear();
    for (Endpoint* endpoint : endpoints) {
      destroy_endpoint(endpoint);
    }
  }

  Transport& node_of(std::uint32_t rank) { return *nodes[place[rank]]; }

  /// Every node polls once. Returns what they did.
  std::uint32_t poll() {
    std::uint32_t count = 0;
    for (const auto& node : nodes) {
      count += node->poll();
    }
    return count;
  }

  /// When the next packet comes, or a node has something to do.
  std::uint64_t next_ns() {
    std::uint64_t next = kNever;
    for (const auto& wires : networks) {
      next = std::min(next, wires->next_arrival_ns());
    }
    for (const auto& node : nodes) {
      next = std::min(next, node->due_ns());
    }
    return next;
  }

  /// Until nothing is on its way; time goes on with the packets.
  void settle() {
    for (int rounds = 0; rounds < 1'000'000; ++rounds) {
      if (poll() != 0) {
        continue;
      }
      const std::uint64_t next = next_ns();
      if (next == kNever) {
        return;
      }
      if (next > clock.now_ns()) {
        // Nodes poll all the time: also just before something comes.
        clock.advance(next - 1 - clock.now_ns());
        (void)poll();
        clock.advance(1);
      }
    }
    check(false, "a simulated network comes to rest");
  }

  ManualClock clock;
  std::vector<std::unique_ptr<SimNetwork>> networks;
  SimNetwork* network = nullptr;  // The first.
  std::vector<std::unique_ptr<SimBootstrap>> bootstraps;
  std::vector<std::unique_ptr<Transport>> nodes;
  std::vector<Endpoint*> endpoints;
  std::vector<std::uint32_t> place;  // Node of each rank.
};

}  // namespace sterna::net
