// Handles of threads: the address of the descriptor with the low bits of the thread's number above
// it, so that a handle of an earlier thread of the same slot is noticed; and texts of refusals.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <sterna/thread.h>

#include "base/thread_pointer.h"
#include "runtime/scope.h"
#include "threads/team.h"
#include "threads/thread.h"
#include "topology/topology.h"

namespace sterna::runtime::capi {

inline constexpr std::size_t kStackBytesMax = std::size_t{1} << 31;  // Of one thread.
inline constexpr unsigned kHandleShift = 48;                         // User addresses end below it.

/// Where the descriptor is that a handle names, if it is one.
[[nodiscard]] constexpr std::uintptr_t address_in(std::uintptr_t handle) noexcept {
  return handle & ((std::uintptr_t{1} << kHandleShift) - 1);
}
[[nodiscard]] inline sterna_thread* handle_of(const threads::Thread* thread) noexcept {
  if (thread == nullptr) {
    return nullptr;
  }
  return reinterpret_cast<sterna_thread*>(reinterpret_cast<std::uintptr_t>(thread) |
                                          thread->id.load(std::memory_order_relaxed)
                                              << kHandleShift);
}

/// The thread of a handle; null, with a text, when it is NULL or its thread is gone.
[[nodiscard]] threads::Thread* thread_of(const sterna_thread* handle) noexcept;

/// The same without a text, for who holds a lock.
[[nodiscard]] threads::Thread* living_thread_of(const sterna_thread* handle) noexcept;

/// "thread 'name'" or "thread <number>", or "a kernel thread" for null.
[[nodiscard]] std::string words_for(const threads::Thread* thread);

/// Keeps the text for sterna_error_detail() of the calling thread.
void keep_detail(std::string_view text) noexcept;

/// `status`, with a text that names object, rule and what to do.
template <typename... Values>
sterna_status refuse(sterna_status status, fmt::format_string<Values...> format,
                     Values&&... values) noexcept {
  const RuntimeScope scope;  // The text is memory of the runtime, also for a call without a scope.
  try {
    keep_detail(fmt::format(format, std::forward<Values>(values)...));
  } catch (...) {
    keep_detail("");
  }
  return status;
}

/// The kernel thread that runs a quick service of rpc.h, a callback of message.h or a polling task
/// in the poll (in_poll.h), of which there is one at a time and in which nothing may wait; 0: no
/// thread. Relaxed: only what a caller itself has stored is what it compares with.
[[gnu::visibility("hidden")]] inline constinit std::atomic<std::uintptr_t> poll_caller{0};

[[nodiscard]] inline bool is_in_poll() noexcept {
  const std::uintptr_t caller = poll_caller.load(std::memory_order_relaxed);
  return caller != 0 && caller == reinterpret_cast<std::uintptr_t>(thread_pointer());
}
/// DEADLOCK, with a text.
sterna_status refuse_in_poll(const char* call) noexcept;

/// For what the header of the call says: NULL, a number out of its range.
sterna_status refuse_argument(const char* call) noexcept;

/// The options of a thread, checked; else why not, with a text.
sterna_status convert(const sterna_thread_options& options, const threads::Team& team,
                      threads::ThreadOptions& spawned) noexcept;
/// UNSUPPORTED: a mode of its own where workers are not taken over.
sterna_status refuse_preemption(std::string_view what) noexcept;

struct Program;

/// What ThreadOptions does not have of a thread's options.
struct ThreadExtras {
  bool has_own_locals = false;  // Or the setting wants it.
  bool is_migratable = false;
};
[[nodiscard]] inline ThreadExtras extras_of(const sterna_thread_options& options) noexcept {
  return {.has_own_locals = options.has_own_locals != 0,
          .is_migratable = options.is_migratable != 0};
}

/// Team::spawn() for those.
Result<threads::Thread*> spawn(const Program& program, const threads::ThreadOptions& options,
                               const ThreadExtras& extras, threads::Entry entry,
                               void* argument) noexcept;
/// threads/life/unstarted.h: the same up to the start; with options.stack in that memory.
sterna_status make_unstarted(const Program& program, const sterna_thread_options& options,
                             const threads::ThreadOptions& converted, threads::Entry entry,
                             void* argument, threads::Thread*& thread) noexcept;

/// If bubbles come from filiation for the new thread or its caller: gives it an entity in the tree,
/// which must be ended if it cannot be started, and turns what binds it into a place.
sterna_status join_filiation(const Program& program, const sterna_thread_options& options,
                             threads::ThreadOptions& spawned) noexcept;
/// What binds the thread, as a place of the topology; sched::kNoPlace: nothing does; kAside: no
/// place says the same.
[[nodiscard]] std::uint32_t place_for(const Program& program, const sterna_thread_options& options,
                                      const threads::ThreadOptions& spawned) noexcept;

/// A place of the machine, by its text; null: there is none, with a text.
[[nodiscard]] const topology::Place* place_named(std::string_view text) noexcept;
/// The workers at a place of the machine, by its text; `count` of 0: refused, with a text.
struct WorkerRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t place = 0;  // Of the topology: its id.
};
[[nodiscard]] WorkerRange workers_at(std::string_view place) noexcept;

}  // namespace sterna::runtime::capi
