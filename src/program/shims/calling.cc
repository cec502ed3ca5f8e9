// Whose code calls. This file has the layer's one thread_local: it is read right where it is used,
// by code that does not switch.
#include "program/shims/calling.h"

#include <unistd.h>

namespace sterna::program {
namespace {

constinit thread_local memory::RankSlot* this_foreign_slot = nullptr;

/// Of a kernel thread whose rank has ended: exit() of a process would have ended it, too.
[[noreturn]] void stop_here() noexcept {
  for (;;) {
    ::pause();
  }
}

}  // namespace

[[gnu::noinline]] memory::RankSlot* foreign_slot() noexcept {
  return this_foreign_slot;
}

[[gnu::noinline]] memory::RankSlot* allocating_foreign_slot() noexcept {
  return this_foreign_slot != nullptr && !threads::is_foreign_in_runtime() ? this_foreign_slot
                                                                           : nullptr;
}

[[gnu::noinline]] void set_foreign_slot(memory::RankSlot* slot) noexcept {
  this_foreign_slot = slot;
}

memory::RankSlot* find_calling_slot() noexcept {
  memory::RankSlot* slot = memory::rank_slot_of(thread_pointer());
  return slot != nullptr ? slot : foreign_slot();
}

RankData& calling_data() noexcept {
  memory::RankSlot* slot = find_calling_slot();
  check(slot != nullptr, "only code of a rank is bound to the loader's shims");
  RankData& data = data_of(*slot);
  if (data.has_ended.load(std::memory_order_relaxed)) [[unlikely]] {
    stop_here();
  }
  return data;
}

}  // namespace sterna::program
