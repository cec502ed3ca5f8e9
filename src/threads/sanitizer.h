// What AddressSanitizer and ThreadSanitizer must know of switches. Nothing in other builds.
//
// LeakSanitizer looks for pointers on stacks that it knows, valgrind for bounds of stacks.
// ASan keeps a fake stack per stack and must know the bounds of the one it is on; TSan keeps a
// shadow call stack per "fiber". (Seastar's core/thread.cc shows the protocol of ASan in full.)
#pragma once

#include <cstddef>

#include "threads/thread.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STERNA_THREADS_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define STERNA_THREADS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define STERNA_THREADS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define STERNA_THREADS_TSAN 1
#endif

namespace sterna::threads {

#if defined(STERNA_THREADS_ASAN)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(STERNA_THREADS_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

/// Of a function that runs on a thread pointer which is another thread's meanwhile.
#if defined(STERNA_THREADS_TSAN)
#define STERNA_NOT_INSTRUMENTED [[gnu::noinline]] __attribute__((no_sanitize("thread")))
#else
#define STERNA_NOT_INSTRUMENTED [[gnu::noinline]]
#endif

/// Frames are several times larger under sanitizers, and their run-time library uses our stack.
inline constexpr std::size_t kStackFactor = kSanitized ? 8 : 1;

/// A thread (or the idle context, `is_idle`, of the calling kernel thread) begins to exist.
void sanitizer_begin(Thread& thread, bool is_idle) noexcept;
/// It has ended, and runs no more.
void sanitizer_end(Thread& thread) noexcept;

/// Memory for a stack is there, for valgrind: threads that follow one another in one slot are one
/// to it. Nothing in sanitized builds.
void stack_appeared(Thread& thread) noexcept;
void stack_goes(Thread& thread) noexcept;

/// The whole switch, with the notes before and after it. `is_last`: `from` never comes back.
void sanitized_switch(Thread& from, Thread& to, bool is_last) noexcept;
/// First thing on a new stack.
void sanitizer_entered(Thread& thread) noexcept;

/// The kernel thread of the idle context `owner` lends its thread pointer (locals.h) to a user
/// thread; it has it back.
void sanitizer_lends(Thread& owner) noexcept;
void sanitizer_has_back(Thread& owner) noexcept;
/// The current thread has no locals of its own any more, and goes on with those of its carrier.
void leave_locals(const Worker& worker, Thread& me) noexcept;

}  // namespace sterna::threads
