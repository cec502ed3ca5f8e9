// See thread_slot.h.
#include "memory/thread_slot.h"

#include "base/thread_pointer.h"

namespace sterna::memory {

constinit thread_local RankSlot* thread_slot = nullptr;

// A rank's block has the variables of the host's libraries where that of a kernel thread has them.
void set_thread_slot(RankSlot& slot, RankSlot* value) noexcept {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(&thread_slot) - thread_pointer();
  *reinterpret_cast<RankSlot**>(slot.thread_pointer + offset) = value;
}

}  // namespace sterna::memory
