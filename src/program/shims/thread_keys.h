// Thread-specific values of a rank's threads: what happens to them when one ends.
#pragma once

#include "program/rank_data.h"

namespace sterna::program {

/// Runs the destructors of the calling thread's values, as often as POSIX has it.
void run_key_destructors(RankData& data) noexcept;

/// The calling kernel thread, which the rank has created, ends: its values go.
void forget_foreign_values(RankData& data) noexcept;

}  // namespace sterna::program
