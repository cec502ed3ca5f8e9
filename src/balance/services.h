// The names of the services of balancing.
#pragma once

#include <string_view>

namespace sterna::balance {

inline constexpr std::string_view kReportService = "balance.report";
inline constexpr std::string_view kMoveService = "balance.move";
inline constexpr std::string_view kArrivedService = "balance.arrived";
inline constexpr std::string_view kReleaseService = "balance.release";

}  // namespace sterna::balance
