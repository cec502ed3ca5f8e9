// Who is there: the list of the threads that a team has spawned.
//
// Kept by slot, not by thread: a descriptor joins the list when its slot is acquired from the iso
// space, and stays while the slot goes from one thread to the next, so birth and end cost nothing
// for it. Adopted threads are in it where their memory's owner says so: those in stacks of the
// program's are, ranks are not.
#pragma once

#include <cstdint>
#include <span>

#include "threads/team.h"

namespace sterna::threads {

class TeamState;

enum class ThreadState : std::uint8_t { running, ready, blocked, held };

/// What was true of a thread when it was looked at.
struct ThreadInfo {
  Thread* thread = nullptr;
  std::uint64_t id = 0;
  ThreadState state = ThreadState::ready;
  std::uint8_t priority = kPriorityNormal;
  std::uint32_t worker = 0;  // Where it runs, or ran last.
  std::uint32_t flags = 0;   // ThreadFlag.
  std::uint64_t cpu_ns = 0;  // With Measuring::yes: measure.h.
  char name[kNameBytes] = {};
};

/// Writes the threads that have not ended, as many as fit; returns how many there are. Each entry
/// is consistent (its fields are of one thread), the list as a whole is not: others go on. From
/// anywhere; holds a spin lock for some ns a slot.
enum class Measuring : std::uint8_t { no, yes };  // yes: one caller at a time.
std::size_t list_threads(const Team& team, std::span<ThreadInfo> infos,
                         Measuring measuring = Measuring::no) noexcept;

/// Copied; the first kNameBytes - 1 bytes count. Any thread.
void set_name(Thread& thread, const char* name) noexcept;
/// Relaxed: a reader wants the name of a moment.
inline void clear_name(Thread& thread) noexcept {
  thread.is_named.store(false, std::memory_order_relaxed);
  std::atomic_ref{reinterpret_cast<std::uint64_t&>(thread.name)}.store(0,
                                                                       std::memory_order_relaxed);
}
/// The name of a thread that may be changing it: 0-terminated.
void read_name(const Thread& thread, char (&name)[kNameBytes]) noexcept;

/// Of memory that was adopted, from its thread's birth until it is given back or adopted again.
void list_adopted(const Team& team, Thread& thread) noexcept;
/// Nothing if it is not in the list.
void unlist_adopted(const Team& team, Thread& thread) noexcept;

// Internal to threads/.
void register_slot(TeamState& team, Thread& thread) noexcept;
void unregister_slot(TeamState& team, Thread& thread) noexcept;
/// Before a team goes: memory that was adopted may outlive it, and belong to another one.
void unlist_all(TeamState& team) noexcept;

}  // namespace sterna::threads
