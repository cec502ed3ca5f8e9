// `sterna info --why net PEER SIZE`: how a message of that size would go to that peer, and why.
#pragma once

#include <cstdint>
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

}  // namespace sterna::cli
