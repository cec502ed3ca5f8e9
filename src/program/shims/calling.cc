// Whose code calls. This file has the layer's one thread_local: it is read right where it is used,
// by code that does not switch.
#include "program/shims/calling.h"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace sterna::program {
namespace {

constinit thread_local memory::RankSlot* this_foreign_slot = nullptr;

[[noreturn, gnu::cold]] void end_for_unknown_caller() noexcept {
  std::fprintf(stderr,
               "sterna-node: code of the program has called libc in kernel thread %d, which "
               "is no rank's: nobody made it with pthread_create or thrd_create in a rank, or "
               "a handler of a signal has run outside of the program. The process ends\n",
               static_cast<int>(::gettid()));
  std::abort();
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
  if (slot == nullptr) [[unlikely]] {
    end_for_unknown_caller();
  }
  return data_of(*slot);
}

}  // namespace sterna::program
