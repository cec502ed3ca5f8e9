// `sterna info --why net PEER SIZE`: how a message of that size would go to that peer, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "base/tunable.h"

namespace sterna::cli {

/// `question`: "net", a driver or a host (as `sterna info --costs` names them) or "any", and a size
/// ("4096", "64K"). Fails with invalid_argument and what may be asked.
[[nodiscard]] Result<nlohmann::json> explain_way(const std::vector<std::string>& question,
                                                 const Settings& settings);
void print_why(const nlohmann::json& why);

/// The same of a running job (`--job`): `question` is "net", the number of a rank, and a size; the
/// node of rank `from` is asked (none: of the first rank that is not the peer). Keys as
/// launch/way_report.h has them, and job. Fails with invalid_argument where the question makes no
/// sense, else with unreachable: no such job or rank, or no answer.
[[nodiscard]] Result<nlohmann::json> explain_running(const std::vector<std::string>& question,
                                                     unsigned job,
                                                     std::optional<std::uint32_t> from);

/// "4096", "64K".
[[nodiscard]] Result<std::uint64_t> read_size(const std::string& text);

}  // namespace sterna::cli
