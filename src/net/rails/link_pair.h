// For tests: two nodes and a link between them.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "net/simulation/sim_cluster.h"

namespace sterna::net {

/// Of so many megabytes a second.
inline SimOptions wire(std::uint64_t mb_per_s, std::uint64_t delay_ns = 20'000) {
  return {.node_count = 2,
          .delay_ns_min = delay_ns,
          .delay_ns_max = delay_ns,
          .ps_per_byte = 1'000'000 / mb_per_s,
          .packet_bytes_max = 16 << 10,
          .channel_packets_max = 32};
}

/// A link of these rails, which are simulated, with the clock of the simulation.
struct LinkPair {
  explicit LinkPair(std::vector<SimOptions> rails,
                std::vector<std::pair<const char*, const char*>> set = {})
      : settings{transport_tunables()} {
    for (const auto& [name, value] : set) {
      check(settings.set(name, value, SettingSource::command_line, "the test").has_value(),
            "the test sets what there is");
    }
    cluster = std::make_unique<SimCluster>(SimCluster::Rails{}, rails, 2, &settings);
  }

  /// Both requests, begun.
  struct Transfer {
    explicit Transfer(LinkPair& pair, std::size_t bytes, std::uint32_t from = 0)
        : sent(bytes), got(bytes) {
      std::iota(reinterpret_cast<unsigned char*>(sent.data()),
                reinterpret_cast<unsigned char*>(sent.data()) + bytes, 1);
      SimCluster& cluster = *pair.cluster;
      const std::uint32_t to = 1 - from;
      cluster.nodes[to]->receive(*cluster.endpoints[to], receive, {from, 1, 2},
                                 Buffer::of(got.data(), bytes));
      cluster.nodes[from]->send(*cluster.endpoints[from], send, {to, 1, 2},
                                Buffer::of(sent.data(), bytes));
    }
    [[nodiscard]] bool is_done() { return send.done.done() && receive.done.done(); }
    [[nodiscard]] bool is_right() {
      return is_done() && send.fault == Fault::none && receive.fault == Fault::none && sent == got;
    }
    std::vector<std::byte> sent;
    std::vector<std::byte> got;
    SendRequest send;
    RecvRequest receive;
  };

  /// Until `transfer` is done, or `ns` have passed. Returns how long it took.
  std::uint64_t run(Transfer& transfer, std::uint64_t ns = 60'000'000'000) {
    const std::uint64_t start_ns = cluster->clock.now_ns();
    while (!transfer.is_done() && cluster->clock.now_ns() - start_ns < ns) {
      if (cluster->poll() == 0 && !transfer.is_done()) {  // A loss is no packet.
        pass_idle(start_ns + ns);
      }
    }
    return cluster->clock.now_ns() - start_ns;
  }

  /// As if the nodes polled each microsecond: to the first at which something has come or is due,
  /// or that is not before `end_ns`. Polls in between would find nothing.
  void pass_idle(std::uint64_t end_ns) {
    constexpr std::uint64_t kStepNs = 1000;
    const std::uint64_t now_ns = cluster->clock.now_ns();
    const std::uint64_t next_ns = std::min(end_ns, cluster->next_ns());
    const std::uint64_t steps = next_ns > now_ns ? (next_ns - now_ns + kStepNs - 1) / kStepNs : 1;
    cluster->clock.advance(steps * kStepNs);
  }

  Settings settings;
  std::unique_ptr<SimCluster> cluster;
};

}  // namespace sterna::net
