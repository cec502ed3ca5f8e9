// The calls of the sanitizers' fiber interfaces. TSan's must come from a function that it does not
// instrument: its shadow stack would underflow when that function returns on the other fiber.
#include "threads/sanitizer.h"

#include "base/valgrind.h"
#include "threads/context.h"

#if defined(STERNA_THREADS_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(STERNA_THREADS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace sterna::threads {

#if defined(STERNA_THREADS_ASAN)

namespace {

/// What only a parked thread knows is not leaked. Ranks' stacks come and go, and a node ends
/// without a look for leaks.
bool is_leak_root(const Thread& thread) noexcept {
  return (thread.flags & ThreadFlag::adopted) == 0;
}

}  // namespace

void sanitizer_begin(Thread& thread, bool is_idle) noexcept {
  thread.sanitizer_fiber = nullptr;
  if (!is_idle) {
    // What the last thread of this slot left in the shadow memory is not ours.
    __asan_unpoison_memory_region(thread.stack_base, thread.stack_bytes);
    if (is_leak_root(thread)) {
      __lsan_register_root_region(thread.stack_base, thread.stack_bytes);
    }
  }
}

void sanitizer_end(Thread& thread) noexcept {
  if (is_leak_root(thread)) {
    __lsan_unregister_root_region(thread.stack_base, thread.stack_bytes);
  }
}

void sanitized_switch(Thread& from, Thread& to, bool is_last) noexcept {
  __sanitizer_start_switch_fiber(is_last ? nullptr : &from.sanitizer_fiber, to.stack_base,
                                 to.stack_bytes);
  (void)switch_context(from.context, to.context, nullptr);
  __sanitizer_finish_switch_fiber(from.sanitizer_fiber, nullptr, nullptr);
}

void sanitizer_entered(Thread&) noexcept {
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

#elif defined(STERNA_THREADS_TSAN)

void sanitizer_begin(Thread& thread, bool is_idle) noexcept {
  thread.sanitizer_fiber = is_idle ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
}

void sanitizer_end(Thread& thread) noexcept {
  __tsan_destroy_fiber(thread.sanitizer_fiber);
  thread.sanitizer_fiber = nullptr;
}

[[gnu::noinline]] __attribute__((no_sanitize("thread"))) void sanitized_switch(Thread& from,
                                                                               Thread& to,
                                                                               bool) noexcept {
  // 0: with synchronisation, for all contexts of one kernel thread follow one another.
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
  (void)switch_context(from.context, to.context, nullptr);
}

void sanitizer_entered(Thread&) noexcept {}

#else

void sanitizer_begin(Thread&, bool) noexcept {}
void sanitizer_end(Thread&) noexcept {}
void sanitized_switch(Thread& from, Thread& to, bool) noexcept {
  (void)switch_context(from.context, to.context, nullptr);
}
void sanitizer_entered(Thread&) noexcept {}

#endif

void stack_appeared(Thread& thread) noexcept {
  if constexpr (!kSanitized) {
    thread.sanitizer_fiber = reinterpret_cast<void*>(
        tell_valgrind_of_stack(thread.stack_base, thread.stack_base + thread.stack_bytes));
  }
}

void stack_goes(Thread& thread) noexcept {
  if constexpr (!kSanitized) {
    make_valgrind_forget_stack(reinterpret_cast<std::uintptr_t>(thread.sanitizer_fiber));
  }
}

}  // namespace sterna::threads
