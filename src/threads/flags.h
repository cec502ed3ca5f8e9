// Thread::flags, for those who do not have the thread to themselves. Internal to threads/, and the
// C API.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

namespace ThreadFlag {
/// Its program has said that it may leave its node. Set before it starts; threads/ does nothing
/// with it.
inline constexpr std::uint32_t migratable = 1 << 28;
static_assert(migratable > measured, "it is behind the last one of thread.h");
}  // namespace ThreadFlag

/// Of a thread that may run, be preempted or resume meanwhile: what is constant while it runs.
[[nodiscard]] inline std::uint32_t flags_of(const Thread& thread) noexcept {
  return std::atomic_ref{const_cast<Thread&>(thread).flags}.load(std::memory_order_relaxed);
}

/// By who has the thread: itself, or who took it from a queue.
inline void set_flags(Thread& thread, std::uint32_t flags) noexcept {
  std::atomic_ref{thread.flags}.store(flags, std::memory_order_relaxed);
}

}  // namespace sterna::threads
