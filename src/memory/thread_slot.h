// The rank whose code runs, found by one load: for what must cost next to nothing
// (mpi/p2p/direct.h).
#pragma once

#include "memory/rank_slot.h"

namespace sterna::memory {

// In the block of a rank's main thread, if set_thread_slot() put it there: the rank's slot. In all
// other blocks, those of kernel threads too: null. Read it once in a function, at its begin, so
// that no address of it is kept over a switch.
extern constinit thread_local RankSlot* thread_slot;

/// `value` for the main thread of the rank of `slot`, whose block is made. On any thread pointer.
void set_thread_slot(RankSlot& slot, RankSlot* value) noexcept;

}  // namespace sterna::memory
