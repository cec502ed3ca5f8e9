// For shims: whose code calls, and running a piece of the host's code on the worker's thread
// pointer.
#pragma once

#include "base/thread_pointer.h"
#include "program/elf/parts.h"
#include "program/rank_data.h"
#include "program/user_code.h"
#include "threads/foreign.h"

namespace sterna::program {

/// True on the rank's own thread, false on a kernel thread that it has created.
[[nodiscard]] inline bool is_main_of(const RankData& data) noexcept {
  return thread_pointer() == data.slot->thread_pointer;
}

/// The rank that this kernel thread was created by; set once by its first function.
[[nodiscard]] memory::RankSlot* foreign_slot() noexcept;
/// The same while it is in its program's code; else null: what it allocates is the node's.
[[nodiscard]] memory::RankSlot* allocating_foreign_slot() noexcept;
void set_foreign_slot(memory::RankSlot* slot) noexcept;

/// The FILE that the calling rank has as stdin, stdout or stderr now.
[[nodiscard]] inline std::FILE* standard_file(Variable which) noexcept {
  return variable<std::FILE*>(calling_data(), which);
}

/// Calls `call()` on the worker's thread pointer, if the rank's is loaded, with the node's memory
/// in any case. It may switch.
template <typename Call>
auto on_worker(const RankData& data, Call&& call) noexcept {
  if (!is_main_of(data)) {
    const threads::ForeignSide side{true};
    return call();
  }
  leave_user();
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    resume_user(*data.slot);
  } else {
    const auto result = call();
    resume_user(*data.slot);
    return result;
  }
}

}  // namespace sterna::program
