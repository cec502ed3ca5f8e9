// The settings of a transport, as its parts read them.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/tunable.h"
#include "net/costs/cost.h"
#include "net/packets/strategy.h"
#include "net/rails/bond.h"
#include "net/rails/plan.h"

namespace sterna::net {

/// Values of the tunables, see transport_options.cc.
enum class CostSampling : std::uint8_t { off, start, cached };
struct CoreOptions {
  CostModel::Options cost;
  std::uint32_t eager_window_bytes;  // Not yet consumed, of one pair of ranks on different nodes.
  std::uint64_t eager_total_bytes;   // The same, of all pairs of one receiver.
  std::uint32_t local_eager_bytes;   // Larger messages within a node wait at their sender.
  std::uint64_t local_window_bytes;  // Messages of its own node that wait at one rank.
  std::uint32_t chunk_bytes;         // Of a large copy, between two polls.
  std::uint32_t poll_packets_max;
  std::string poll_at;  // As the setting has it: net/opening/poll_place.h.
  const Strategy* strategy;
  std::string strategy_name;  // As the setting has it.
  CostSampling cost_sampling;
  LinkWishes link_wishes;
  bool may_hand_over;  // Sends, to workers without work.
  LinkOptions links;
  bool joins_pages;  // Of memory that peers copy directly.
};
[[nodiscard]] Result<CoreOptions> read_options(const Settings* settings);
/// As they are in a job of so many ranks: the window of a pair is its share of eager_total_bytes.
[[nodiscard]] CoreOptions share_window(CoreOptions options, std::uint32_t rank_count) noexcept;

/// Of a link of so many rails.
[[nodiscard]] CostModel::Options link_cost(const CoreOptions& options,
                                           std::size_t rail_count) noexcept;

}  // namespace sterna::net
