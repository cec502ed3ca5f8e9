// The table of offsets. A field that moves is found again; one that means something else needs
// another version, here and in tools/gdb/sterna_memory.py.
#include "threads/observation/debug.h"

#include <cstddef>

#include "memory/layout.h"
#include "memory/rank_slot.h"
#include "threads/worker.h"

namespace sterna::threads {

void keep_debug_layout() noexcept {
  asm volatile(""
               :
               : "r"(&sterna_debug_layout[0]), "r"(&sterna_debug_objects),
                 "r"(&sterna_debug_rank_slot_shift));
}

}  // namespace sterna::threads

using sterna::memory::RankSlot;
using sterna::threads::Thread;
using sterna::threads::Worker;
namespace memory = sterna::memory;

// A worker's layout is as good as standard: no virtual functions, no bases.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

extern "C" {

constinit sterna::threads::DebugObjects sterna_debug_objects{};

const std::uint32_t* const sterna_debug_rank_slot_shift = &memory::detail::rank_slot_shift;

constinit const sterna::threads::DebugEntry sterna_debug_layout[] = {
    {"version", 4},
    {"iso_base", memory::kIsoBase},
    {"class_area_shift", memory::kClassAreaShift},
    {"class_count", memory::kStackClassCount},
    {"stack_slot_bytes_min", memory::kStackSlotBytesMin},
    {"rank_base", memory::kRankBase},
    {"rank_area_bytes", memory::kRankAreaBytes},
    {"descriptor_bytes", memory::kDescriptorBytes},
    {"colour_count", memory::kColourCount},
    {"colour_bytes", memory::kColourBytes},
    {"colour_step", memory::kColourStep},
    {"rank_head_bytes", memory::kRankHeadBytes},
    {"slot_images", offsetof(RankSlot, images)},
    {"thread_bytes", sizeof(Thread)},
    {"thread_context", offsetof(Thread, context)},
    {"thread_context_code", offsetof(Thread, context.code)},
    {"thread_context_frame", offsetof(Thread, context.frame)},
    {"thread_worker", offsetof(Thread, worker)},
    {"thread_team", offsetof(Thread, team)},
    {"thread_activity", offsetof(Thread, activity)},
    {"thread_flags", offsetof(Thread, flags)},
    {"flag_kernel_bound", sterna::threads::ThreadFlag::kernel_bound},
    {"thread_id", offsetof(Thread, id)},
    {"thread_name", offsetof(Thread, name)},
    {"thread_name_bytes", sterna::threads::kNameBytes},
    {"worker_index", offsetof(Worker, index)},
    {nullptr, 0},
};

}  // extern "C"
