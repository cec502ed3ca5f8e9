// How find_current_rank() knows ranks that run on ordinary kernel threads. For those who open and
// close a job only.
#pragma once

#include "runtime/rank_context.h"

namespace sterna::runtime {

/// Process mode: the one rank of this process; null: none any more. Written at start and end.
void set_process_rank(RankContext* context) noexcept;

/// Node mode: the slot of the rank that has created the calling kernel thread, or null. Installed
/// once, at start.
using ForeignLookup = memory::RankSlot* (*)() noexcept;
void set_foreign_lookup(ForeignLookup lookup) noexcept;

}  // namespace sterna::runtime
