// Hosts of a job: their names as users write them, and how many nodes each takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launch/plan.h"

namespace sterna::launch {

/// The index in `hosts` of the host of each node.
[[nodiscard]] Result<std::vector<std::size_t>> hosts_of_nodes(const RunOptions& options,
                                                              const std::vector<HostEntry>& hosts,
                                                              std::size_t node_count);

}  // namespace sterna::launch
