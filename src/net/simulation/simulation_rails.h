// The networks of a simulated history, and what befalls them, drawn from its seed:
// simulation_history.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/tunable.h"
#include "net/drivers/sim/sim.h"
#include "net/simulation/sim_cluster.h"
#include "net/transport.h"

namespace sterna::net::simulation {

/// What a history is like.
struct Kind {
  enum class Wires : std::uint8_t {
    plain,    // One rail that loses nothing: gates, without links.
    lossy,    // Rails that lose, repeat and change packets.
    failing,  // Rails that break, stand still and come back.
  } wires;
  bool is_short;          // Messages of a few bytes.
  bool is_flood;          // Much is sent before it is received.
  bool is_lending = false;  // Long messages are lent in parts, by some of the rails.
  bool is_quick = false;   // Ranks receive what comes before anything else does:
  bool is_moving = false;  // those that move meanwhile; else ones that never do.
  std::uint32_t window;   // Of a pair,
  std::uint32_t local;    // and within a node; bytes.
  std::vector<SimOptions> rails;
};

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

inline Kind kind_of(Random& random) {
  Kind kind{};
  const auto node_count = 2 + static_cast<std::uint32_t>(random.below(3));
  const std::uint64_t wires = random.below(10);
  kind.wires = wires < 5   ? Kind::Wires::plain
               : wires < 7 ? Kind::Wires::lossy
                           : Kind::Wires::failing;
  kind.is_short = random.chance(0.4);
  kind.is_flood = random.chance(0.5);
  kind.window = 4096 << random.below(3);
  kind.local = 4096 << random.below(3);
  const std::uint64_t count = kind.wires == Kind::Wires::plain     ? 1
                              : kind.wires == Kind::Wires::failing ? 2 + random.below(2)
                                                                   : 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    SimOptions& rail = kind.rails.emplace_back(options_of(random, node_count));
    if (kind.wires == Kind::Wires::plain) {
      rail.has_direct = random.chance(0.5);
      rail.has_short_way = random.chance(0.5);
      continue;
    }
    rail.ps_per_byte = random.below(3000);
    if (kind.wires == Kind::Wires::lossy) {
      rail.lost_per_mille = static_cast<std::uint32_t>(random.below(100));
      rail.twice_per_mille = static_cast<std::uint32_t>(random.below(100));
      rail.corrupt_per_mille = static_cast<std::uint32_t>(random.below(100));
    }
  }
  return kind;
}

/// Every sixteenth history of a shard is one in which messages are received the short way. That
/// wants a rank which waits for one message and has neither receives posted nor messages kept; in
/// the other histories each rank soon has some for ever. They stay what they are.
inline Kind quick_of(std::uint64_t seed, Kind kind) {
  kind.is_quick = seed / 8 % 16 == 5;
  kind.is_moving = kind.is_quick && seed / 128 % 2 == 1;
  if (kind.is_quick) {
    kind.wires = Kind::Wires::plain;
    kind.is_short = true;
    kind.rails.resize(1);
    kind.rails.front() = {.node_count = kind.rails.front().node_count,
                          .seed = seed,
                          .delay_ns_max = 500 + seed % 1000};
    kind.rails.front().has_short_way = true;
  }
  return kind;
}

/// Every third history lends, if no rail of it loses packets. Not drawn, so that all others stay
/// what they are.
inline Kind lending_of(std::uint64_t seed, Kind kind) {
  kind.is_lending = seed / 8 % 3 == 1 && kind.wires != Kind::Wires::lossy && !kind.is_quick;
  kind.is_short = kind.is_short && !kind.is_lending;
  for (std::size_t i = 0; i < kind.rails.size() && kind.is_lending; ++i) {
    SimOptions& rail = kind.rails[i];
    rail.lent_bytes_max = i == 0 || seed / 24 % 4 != 0 ? 2048 << (seed / 96 % 4) : 0;
    rail.has_direct = false;
  }
  return kind;
}

/// In every second history of failing wires a driver believes for a while in a way that it has
/// opened anew and that is still cut. Not drawn, as above.
inline Kind patient_of(std::uint64_t seed, Kind kind) {
  for (SimOptions& rail : kind.rails) {
    if (kind.wires == Kind::Wires::failing && seed / 8 % 2 == 0) {
      rail.revive_patience_ns = 1'000'000ULL << (seed / 16 % 12);
    }
  }
  return kind;
}

/// Windows so small that they are met. Changed bytes are noticed; a rail that is silent for want of
/// events is not given up.
inline Settings settings_of(const Kind& kind) {
  Settings settings{transport_tunables()};
  const auto set = [&](const char* name, const std::string& value) {
    check(settings.set(name, value, SettingSource::command_line, "the test").has_value(),
          "the settings of the test exist");
  };
  set("net_eager_window", std::to_string(kind.window));
  set("net_local_window", std::to_string(kind.local));
  set("net_silence", "3600s");
  if (kind.wires == Kind::Wires::failing) {
    set("net_reconnect", "3600s");
  }
  if (kind.is_lending) {
    set("net_lent_bytes", "1000");
  }
  if (kind.wires == Kind::Wires::lossy) {
    set("net_checksums", "on");
  }
  return settings;
}

/// Wires that are cut, held up and made whole again. Of the rails between two nodes one is whole at
/// any time, so that no node is lost.
class Wires {
 public:
  Wires(SimCluster& cluster, Random& random) : cluster_{cluster}, random_{random} {}

  void step() {
    const auto node_count = static_cast<std::uint32_t>(cluster_.nodes.size());
    Wire wire{.rail = static_cast<std::uint32_t>(random_.below(cluster_.networks.size())),
              .one = static_cast<std::uint32_t>(random_.below(node_count)),
              .other = 0,
              .is_cut = random_.chance(0.6)};
    wire.other =
        (wire.one + 1 + static_cast<std::uint32_t>(random_.below(node_count - 1))) % node_count;
    if (wire.one > wire.other) {
      std::swap(wire.one, wire.other);
    }
    if (!broken_.empty() && random_.chance(0.5)) {
      mend(random_.below(broken_.size()));
    } else if (may_break(wire)) {
      SimNetwork& network = *cluster_.networks[wire.rail];
      wire.is_cut ? network.sever(wire.one, wire.other) : network.stall(wire.one, wire.other, true);
      broken_.push_back(wire);
      ++count_;
    }
  }
  /// Cuts wires on which the news is that a lent part has been read: its sender cannot know.
  void cut_behind_reads() {
    for (std::uint32_t rail = 0; rail < cluster_.networks.size(); ++rail) {
      Wire wire{.rail = rail, .one = 0, .other = 0, .is_cut = true};
      if (cluster_.networks[rail]->has_news_of_read(wire.one, wire.other) && may_break(wire)) {
        cluster_.networks[rail]->sever(wire.one, wire.other);
        broken_.push_back(wire);
        ++count_;
      }
    }
  }
  void finish() {
    while (!broken_.empty()) {
      mend(broken_.size() - 1);
    }
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

 private:
  struct Wire {
    std::uint32_t rail;
    std::uint32_t one;
    std::uint32_t other;
    bool is_cut;
  };
  bool may_break(const Wire& wire) const {
    std::size_t broken = 1;
    for (const Wire& other : broken_) {
      if (other.one == wire.one && other.other == wire.other) {
        if (other.rail == wire.rail) {
          return false;
        }
        ++broken;
      }
    }
    return broken < cluster_.networks.size();
  }
  void mend(std::size_t index) {
    const Wire wire = broken_[index];
    broken_.erase(broken_.begin() + static_cast<std::ptrdiff_t>(index));
    SimNetwork& network = *cluster_.networks[wire.rail];
    wire.is_cut ? network.mend(wire.one, wire.other) : network.stall(wire.one, wire.other, false);
  }

  SimCluster& cluster_;
  Random& random_;
  std::vector<Wire> broken_;
  std::uint32_t count_ = 0;
};

}  // namespace sterna::net::simulation
