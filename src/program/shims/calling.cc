// Whose code calls. This file has the layer's only thread_local variables: they are read right
// where they are used, by code that does not switch.
#include "program/shims/calling.h"

namespace sterna::program {
namespace {

constinit thread_local memory::RankSlot* this_foreign_slot = nullptr;
constinit thread_local ThreadValues* this_foreign_values = nullptr;

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

[[gnu::noinline]] ThreadValues* foreign_values() noexcept {
  return this_foreign_values;
}

[[gnu::noinline]] void set_foreign_values(ThreadValues* values) noexcept {
  this_foreign_values = values;
}

memory::RankSlot* find_calling_slot() noexcept {
  memory::RankSlot* slot = memory::rank_slot_of(thread_pointer());
  return slot != nullptr ? slot : foreign_slot();
}

RankData& calling_data() noexcept {
  memory::RankSlot* slot = find_calling_slot();
  check(slot != nullptr, "only code of a rank is bound to the loader's shims");
  return data_of(*slot);
}

}  // namespace sterna::program
