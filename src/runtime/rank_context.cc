// Finds the rank that calls: by the stack pointer, else by the kernel thread, else the process's.
#include "runtime/rank_context.h"

#include "runtime/process_rank.h"

namespace sterna::runtime {

namespace {
// The two ways to a rank that no stack pointer tells. Written while the process has one kernel
// thread in the runtime (open, close), read by all.
constinit RankContext* process_rank = nullptr;
constinit ForeignLookup foreign_lookup = nullptr;
}  // namespace

void set_process_rank(RankContext* context) noexcept {
  process_rank = context;
}
void set_foreign_lookup(ForeignLookup lookup) noexcept {
  foreign_lookup = lookup;
}

RankContext* find_current_rank() noexcept {
  if (memory::RankSlot* slot = memory::rank_slot_of(__builtin_frame_address(0))) {
    return static_cast<RankContext*>(slot->context);
  }
  if (process_rank != nullptr) {
    return process_rank;
  }
  if (foreign_lookup != nullptr) {
    memory::RankSlot* slot = foreign_lookup();
    return slot == nullptr ? nullptr : static_cast<RankContext*>(slot->context);
  }
  return nullptr;
}

}  // namespace sterna::runtime
