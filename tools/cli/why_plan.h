// What a job would make of a list of drivers on its way to a peer: a part of `sterna info --why`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "net/costs/costs_file.h"
#include "net/drivers/choice.h"
#include "net/packets/strategy.h"
#include "net/rails/plan.h"

namespace sterna::cli {

/// Who is asked about.
struct Peer {
  bool is_here = false;  // On this host, as far as the question says.
  std::uint64_t now_s = 0;
  std::vector<net::CostsEntry> known;  // Of ways to it.
};

/// What is to be told of the ways.
struct WhyQuestion {
  const Peer& peer;
  const net::Strategy& strategy;
  std::uint64_t bytes;
  const Settings& settings;
};

/// A driver of a list, as a job on this host would find it.
struct KnownDriver {
  net::WayDriver way;
  std::string absent{};  // Why it cannot be opened here; empty: nothing is known against it.
};
[[nodiscard]] KnownDriver know_driver(const net::DriverChoice& choice, const WhyQuestion& question);

/// "measured 7 s ago".
[[nodiscard]] std::string age_of(std::uint64_t seconds);

/// One way of a driver: keys driver, to, figures, protocol, forming. `known`: as an earlier job has
/// measured it; null: as its profile says.
[[nodiscard]] Result<nlohmann::json> describe_way(const net::WayDriver& driver,
                                                  const net::CostsEntry* known,
                                                  const WhyQuestion& question);

struct Plan {
  // Keys drivers, is_link, why, absent (list); of a link: protocol, forming, choice, copies, rails;
  // else, if a driver reaches the peer: rail, its name.
  nlohmann::json link;
  nlohmann::json way;  // As describe_way(), of that rail; null: there is none.
};
/// A link of some rails, or one rail alone, or none. Fails where the settings are wrong.
[[nodiscard]] Result<Plan> explain_plan(const std::vector<net::DriverChoice>& drivers,
                                        const WhyQuestion& question);

}  // namespace sterna::cli
