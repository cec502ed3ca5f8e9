// Birth and end of threads: slots, descriptors, joining. Internal to threads/.
#pragma once

#include "threads/scheduler.h"
#include "threads/worker.h"

namespace sterna::threads {

/// Values of the word Thread::joiner that are no Waiter.
namespace Joined {
inline constexpr std::uintptr_t ended = 1;
inline constexpr std::uintptr_t detached = 8;
inline constexpr std::uintptr_t reaped = 16;
}  // namespace Joined

/// The end of the current thread.
[[noreturn]] void end_current(Thread& me) noexcept;

// `here` is the caller's worker_here(), in all that follows.

/// Makes a thread that is ready to start runnable on `target` (kAnyWorker: here, or the next in
/// turn).
void start_thread(TeamState& team, Worker* here, Thread& thread, std::uint32_t target) noexcept;

/// A slot with a thread in it that has everything but its entry.
Result<Thread*> make_thread(TeamState& team, Worker* here, const ThreadOptions& options) noexcept;

/// Fills in what every new thread has, whatever its memory.
void init_thread(TeamState& team, Worker* here, Thread& thread, const ThreadOptions& options,
                 Entry entry, void* argument) noexcept;

/// Gives the slots that the worker keeps back to the iso space.
void drop_slots(Worker& worker) noexcept;

/// Runs the destructors of thread-specific data and frees the table.
void end_keys(Thread& thread) noexcept;

/// Back to the iso space.
void release_slot(TeamState& team, Thread& thread) noexcept;

// Inline, what follows: parts of birth and join, which cost some ns each.

/// The caller's worker if it is of this team, else null.
[[nodiscard]] inline Worker* worker_here(const TeamState& team) noexcept {
  Worker* const worker = current_worker();
  return worker != nullptr && &worker->team == &team ? worker : nullptr;
}

/// Counts a thread that begins to belong to the team; its number, from 1. Those of one worker are
/// apart by the count of workers + 1, those of threads made elsewhere fill the gap. Relaxed: a
/// count orders nothing.
inline std::uint64_t count_birth(TeamState& team, Worker* here) noexcept {
  if (here != nullptr) [[likely]] {
    // One writer: no read-modify-write.
    const std::uint64_t id = here->next_id.load(std::memory_order_relaxed);
    here->next_id.store(id + here->id_step, std::memory_order_relaxed);
    return id;
  }
  return (team.foreign_born.fetch_add(1, std::memory_order_relaxed) + 1) *
         (team.options.worker_count + std::uint64_t{1});
}

[[gnu::always_inline]] inline void count_end(TeamState& team, Worker* here) noexcept {
  if (here != nullptr) [[likely]] {
    // Release: who sees in Team::live_thread_count() that all have ended may free what they used.
    here->ended.store(here->ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  } else {
    team.foreign_ended.fetch_add(1, std::memory_order_release);
  }
}

/// A slot that is not used goes to the caller's worker, or back to the iso space.
inline void keep_slot(TeamState& team, Worker* here, Thread& thread) noexcept {
  if (here != nullptr && here->slots[thread.stack_class].keep(thread)) [[likely]] {
    return;
  }
  release_slot(team, thread);
}

/// What is rare at the end of a thread.
void reap_extras(Thread& thread) noexcept;

/// The memory of an ended thread goes to the caller's worker, or back to the iso space.
inline void reap(Worker* here, Thread& thread) noexcept {
  if constexpr (kSanitized) {
    sanitizer_end(thread);
  }
  if ((thread.flags & ThreadFlag::adopted) != 0) {
    // The last access: whoever sees it (acquire, in the C API) may make another thread there.
    thread.joiner.store(Joined::reaped, std::memory_order_release);
    return;
  }
  thread.joiner.store(Joined::reaped, std::memory_order_relaxed);
  if ((thread.end_flags & EndFlag::guarded) != 0) [[unlikely]] {
    reap_extras(thread);
  }
  keep_slot(*thread.team->state(), here, thread);
}

}  // namespace sterna::threads
