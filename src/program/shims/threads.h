// Kernel threads that ranks create: what must exist before the first, and whether some are left.
#pragma once

#include "base/result.h"
#include "program/rank_data.h"

namespace sterna::program {

/// Once a process.
Result<> prepare_threads();

/// Whether kernel threads of the rank may still run, in its text and on its data: all that were not
/// joined, since one that has ended as far as the program knows is in libc for a moment more.
[[nodiscard]] bool has_threads_left(RankData& data) noexcept;

}  // namespace sterna::program
