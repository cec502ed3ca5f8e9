// What is refused of a job before anything of it starts, and the environment it will see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/plan.h"

namespace sterna::launch {

/// Of all programs together.
[[nodiscard]] std::uint64_t count_ranks(const RunOptions& options);

/// Counts that cannot be meant, values that a setting does not take (wherever they come from), a
/// report that could not be written: invalid_argument.
[[nodiscard]] Result<> check_options(const RunOptions& options);

/// Whether malloc of this program is asked for large pages: it runs as processes, and nobody has
/// switched that off.
[[nodiscard]] bool wants_large_pages(const RunOptions& options, const Application& application);

/// Ours, with the program's own variables; without what is private to this host, if it runs
/// elsewhere.
[[nodiscard]] std::vector<std::string> environment_of(const Application& application,
                                                      bool is_local);

}  // namespace sterna::launch
