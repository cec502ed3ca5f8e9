// For shims: whose code calls, and running a piece of the host's code on the worker's thread
// pointer.
#pragma once

#include "base/syscall.h"
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

/// The thread-specific values of this kernel thread, which a rank has created. Null: it has none.
[[nodiscard]] ThreadValues* foreign_values() noexcept;
void set_foreign_values(ThreadValues* values) noexcept;

/// As calling_data(), but null where no code of a rank should be: in the handler of a signal that
/// found the worker in the runtime. Shims that a handler may call leave the call to libc then.
[[nodiscard]] RankData* find_calling_data() noexcept;

/// The FILE that the calling rank has as stdin, stdout or stderr now; in such a handler `of_node`.
[[nodiscard]] inline std::FILE* standard_file(Variable which, std::FILE* of_node) noexcept {
  const RankData* const data = find_calling_data();
  return data != nullptr ? variable<std::FILE*>(*data, which) : of_node;
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

/// The same for functions of libc that return a number or a pointer: what they say in errno there
/// becomes the rank's.
template <typename Call>
auto on_worker_with_error(const RankData& data, Call&& call) noexcept {
  int number = 0;
  const auto result = on_worker(data, [&] {
    const auto inner = call();
    number = last_error_number();
    return inner;
  });
  set_last_error_number(number);
  return result;
}

}  // namespace sterna::program
