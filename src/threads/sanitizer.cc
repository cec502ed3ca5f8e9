// The calls of the sanitizers' fiber interfaces. TSan's must come from a function that it does not
// instrument: its shadow stack would underflow when that function returns on the other fiber.
#include "threads/sanitizer.h"

#include "base/thread_pointer.h"
#include "base/valgrind.h"
#include "threads/carriers/locals.h"
#include "threads/context/context.h"
#include "threads/flags.h"
#include "threads/worker.h"

#if defined(STERNA_THREADS_ASAN)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(STERNA_THREADS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace sterna::threads {

#if defined(STERNA_THREADS_ASAN) || defined(STERNA_THREADS_TSAN)
namespace {

/// Who has the thread pointer of `thread`, which runs on `worker`, while no user thread does.
STERNA_NOT_INSTRUMENTED const Thread& keeper_of(const Worker& worker, const Thread& thread) {
  return (thread.flags & ThreadFlag::own_locals) != 0 ? thread.locals->idle : *worker.idle;
}

}  // namespace
#endif

#if defined(STERNA_THREADS_ASAN)

namespace {

/// What only a parked thread knows is not leaked. Ranks' stacks come and go, and a node ends
/// without a look for leaks.
bool is_leak_root(const Thread& thread) noexcept {
  return (thread.flags & ThreadFlag::adopted) == 0;
}

/// The bounds of this kernel thread's stack.
void note_kernel_stack(Thread& idle) noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* base = nullptr;
    std::size_t bytes = 0;
    (void)pthread_attr_getstack(&attributes, &base, &bytes);
    (void)pthread_attr_destroy(&attributes);
    idle.stack_base = static_cast<std::byte*>(base);
    idle.stack_bytes = bytes;
  }
}

/// Changes the thread pointer, if need be, from that of `from` to that of `to`: what ASan keeps
/// there, too. A pointer that is not loaded waits in the middle of a switch, so to speak.
void change_pointer(const Worker& worker, Thread& from, const Thread& keeper, const Thread& to) {
  void* none = nullptr;
  __sanitizer_start_switch_fiber(&from.sanitizer_fiber, keeper.stack_base, keeper.stack_bytes);
  set_thread_pointer(pointer_for(worker, to));
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  __sanitizer_start_switch_fiber(&none, to.stack_base, to.stack_bytes);
}

}  // namespace

void sanitizer_begin(Thread& thread, bool is_idle) noexcept {
  thread.sanitizer_fiber = nullptr;
  if (is_idle) {
    note_kernel_stack(thread);
  } else {
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
  if (((from.flags | to.flags) & ThreadFlag::own_locals) != 0) {
    const Worker& worker = *from.worker.load(std::memory_order_relaxed);
    change_pointer(worker, from, keeper_of(worker, from), to);
  } else {
    __sanitizer_start_switch_fiber(is_last ? nullptr : &from.sanitizer_fiber, to.stack_base,
                                   to.stack_bytes);
  }
  (void)switch_context(from.context, to.context, nullptr);
  __sanitizer_finish_switch_fiber(from.sanitizer_fiber, nullptr, nullptr);
}

void sanitizer_entered(Thread&) noexcept {
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

void sanitizer_lends(Thread& owner) noexcept {
  __sanitizer_start_switch_fiber(&owner.sanitizer_fiber, owner.stack_base, owner.stack_bytes);
}

void sanitizer_has_back(Thread& owner) noexcept {
  __sanitizer_finish_switch_fiber(owner.sanitizer_fiber, nullptr, nullptr);
}

void leave_locals(const Worker& worker, Thread& me) noexcept {
  const Thread& keeper = keeper_of(worker, me);
  set_flags(me, me.flags & ~ThreadFlag::own_locals);
  change_pointer(worker, me, keeper, me);
  __sanitizer_finish_switch_fiber(me.sanitizer_fiber, nullptr, nullptr);
}

#elif defined(STERNA_THREADS_TSAN)

namespace {

/// Changes the thread pointer from that of `keeper` to that of `to`. TSan keeps there which fiber
/// runs: that of the kernel thread, while no user thread does.
STERNA_NOT_INSTRUMENTED void change_pointer(const Worker& worker, const Thread& keeper,
                                            const Thread& to) noexcept {
  auto* const order = const_cast<Worker*>(&worker);
  const std::uintptr_t pointer = pointer_for(worker, to);
  __tsan_switch_to_fiber(keeper.sanitizer_fiber, 0);
  __tsan_release(order);
  set_thread_pointer(pointer);
  __tsan_acquire(order);
}

}  // namespace

void sanitizer_begin(Thread& thread, bool is_idle) noexcept {
  thread.sanitizer_fiber = is_idle ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
}

void sanitizer_end(Thread& thread) noexcept {
  __tsan_destroy_fiber(thread.sanitizer_fiber);
  thread.sanitizer_fiber = nullptr;
}

STERNA_NOT_INSTRUMENTED void sanitized_switch(Thread& from, Thread& to, bool) noexcept {
  if (((from.flags | to.flags) & ThreadFlag::own_locals) != 0) {
    const Worker& worker = *from.worker.load(std::memory_order_relaxed);
    change_pointer(worker, keeper_of(worker, from), to);
  }
  // 0: with synchronisation, for all contexts of one kernel thread follow one another.
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
  (void)switch_context(from.context, to.context, nullptr);
}

void sanitizer_entered(Thread&) noexcept {}
void sanitizer_lends(Thread&) noexcept {}
void sanitizer_has_back(Thread&) noexcept {}

STERNA_NOT_INSTRUMENTED void leave_locals(const Worker& worker, Thread& me) noexcept {
  const Thread& keeper = keeper_of(worker, me);
  me.flags &= ~ThreadFlag::own_locals;
  change_pointer(worker, keeper, me);
  __tsan_switch_to_fiber(me.sanitizer_fiber, 0);
}

#else

void sanitizer_begin(Thread&, bool) noexcept {}
void sanitizer_end(Thread&) noexcept {}
void sanitized_switch(Thread& from, Thread& to, bool) noexcept {
  (void)switch_context(from.context, to.context, nullptr);
}
void sanitizer_entered(Thread&) noexcept {}
void sanitizer_lends(Thread&) noexcept {}
void sanitizer_has_back(Thread&) noexcept {}
void leave_locals(const Worker& worker, Thread& me) noexcept {
  set_flags(me, me.flags & ~ThreadFlag::own_locals);
  set_thread_pointer(pointer_for(worker, me));
}

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
