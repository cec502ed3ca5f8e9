// The networks of a simulated history, drawn from its seed: simulation_history.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/tunable.h"
#include "net/drivers/sim/sim.h"
#include "net/transport.h"

namespace sterna::net::simulation {

inline SimOptions options_of(Random& random, std::uint32_t node_count) {
  SimOptions options;
  options.node_count = node_count;
  options.seed = random.next();
  options.delay_ns_max = random.below(5000);
  options.is_ordered = random.chance(0.5);
  options.channel_packets_max = 1 + static_cast<std::uint32_t>(random.below(64));
  options.packet_bytes_max = 512 << random.below(3);
  return options;
}

/// One rail that loses nothing, or some that do.
inline std::vector<SimOptions> rails_of(Random& random) {
  const auto node_count = 2 + static_cast<std::uint32_t>(random.below(3));
  std::vector<SimOptions> rails;
  if (random.chance(0.6)) {
    rails.push_back(options_of(random, node_count));
    rails.back().has_direct = random.chance(0.5);
    return rails;
  }
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    SimOptions& rail = rails.emplace_back(options_of(random, node_count));
    rail.ps_per_byte = random.below(3000);
    rail.lost_per_mille = static_cast<std::uint32_t>(random.below(100));
    rail.twice_per_mille = static_cast<std::uint32_t>(random.below(100));
    rail.corrupt_per_mille = static_cast<std::uint32_t>(random.below(100));
  }
  return rails;
}

/// Changed bytes are noticed; a rail that is silent for want of events is not given up.
inline Settings settings_of() {
  Settings settings{transport_tunables()};
  check(
      settings.set("net_checksums", "on", SettingSource::command_line, "the test").has_value() &&
          settings.set("net_silence", "3600s", SettingSource::command_line, "the test").has_value(),
      "the settings of the test exist");
  return settings;
}

}  // namespace sterna::net::simulation
