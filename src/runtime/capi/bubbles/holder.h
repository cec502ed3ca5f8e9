// Who holds a lock of sync.h, as one word that lies beside the lock.
#pragma once

#include <cstdint>
#include <string>

#include "base/thread_pointer.h"
#include "memory/layout.h"
#include "runtime/capi/threads/handle.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {

/// The user thread that calls, else the kernel thread; in the poll neither, as whoever polls may
/// hold what a quick service asks for. Never 0, which is nobody.
[[nodiscard]] inline std::uintptr_t holder_word() noexcept {
  if (is_in_poll()) [[unlikely]] {
    return thread_pointer() + 1;
  }
  const threads::Thread* const me = threads::self();
  return me != nullptr ? reinterpret_cast<std::uintptr_t>(me) : thread_pointer();
}

/// Words for the holder: a user thread's name, if it is one.
[[nodiscard]] inline std::string words_for_holder(std::uintptr_t word) {
  if (word == 0) {
    return "nobody";
  }
  const bool is_user_thread = memory::descriptor_address(word) == word;
  return words_for(is_user_thread ? reinterpret_cast<const threads::Thread*>(word) : nullptr);
}

}  // namespace sterna::runtime::capi
