// How a message of a running job would go, and why, as JSON and for a reader: the answer to
// `sterna info --why net PEER SIZE --job ID`.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "net/explanation.h"

namespace sterna::launch {

/// Keys: peer_node, bytes, is_here, is_lost, protocol; and but for a peer on the same node: driver,
/// strategy, forming, thresholds (name: bytes, or null: never), costs (list), link (is_link,
/// choice, copies, rails).
[[nodiscard]] nlohmann::json describe_way(const net::WayExplanation& way);

/// The same for a reader; what it does not find there it leaves out.
[[nodiscard]] std::string way_text(const nlohmann::json& description);

}  // namespace sterna::launch
