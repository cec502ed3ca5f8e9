// The list of slots and what is read from it.
#include "threads/control/roster.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "threads/control/measure.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

using Words = std::array<std::uint64_t, kNameBytes / sizeof(std::uint64_t)>;

std::uint64_t& name_word(Thread& thread, std::size_t index) noexcept {
  return reinterpret_cast<std::uint64_t*>(thread.name)[index];
}

ThreadState state_of(const Thread& thread, const Worker& home) noexcept {
  if (home.current.load(std::memory_order_relaxed) == &thread) {
    return ThreadState::running;
  }
  if (has(thread.hold.load(std::memory_order_relaxed), Hold::wanted | Hold::held)) {
    return ThreadState::held;
  }
  return thread.activity.load(std::memory_order_relaxed) == Activity::blocked ? ThreadState::blocked
                                                                              : ThreadState::ready;
}

/// False: it has ended, or became another one while it was read.
bool read_info(Thread& thread, ThreadInfo& info) noexcept {
  // Acquire: what follows is read after the id; the second reading notices a change.
  const std::uint64_t id = thread.id.load(std::memory_order_acquire);
  const Worker* const home = thread.worker.load(std::memory_order_relaxed);
  if (thread.activity.load(std::memory_order_relaxed) == Activity::none || home == nullptr) {
    return false;
  }
  info = {.thread = &thread,
          .id = id,
          .state = state_of(thread, *home),
          .priority = thread.priority.load(std::memory_order_relaxed),
          .worker = home->index,
          .flags = std::atomic_ref{thread.flags}.load(std::memory_order_relaxed)};
  read_name(thread, info.name);
  std::atomic_thread_fence(std::memory_order_acquire);
  return thread.id.load(std::memory_order_relaxed) == id &&
         thread.activity.load(std::memory_order_relaxed) != Activity::none;
}

}  // namespace

void set_name(Thread& thread, const char* name) noexcept {
  thread.is_named.store(true, std::memory_order_relaxed);
  Words words{};
  std::strncpy(reinterpret_cast<char*>(words.data()), name, kNameBytes - 1);
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Relaxed: a reader wants the name of a moment, or a part of it.
    std::atomic_ref{name_word(thread, i)}.store(words[i], std::memory_order_relaxed);
  }
}

void read_name(const Thread& thread, char (&name)[kNameBytes]) noexcept {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] =
        std::atomic_ref{name_word(const_cast<Thread&>(thread), i)}.load(std::memory_order_relaxed);
  }
  std::memcpy(name, words.data(), kNameBytes);
  name[kNameBytes - 1] = '\0';
}

void register_slot(TeamState& team, Thread& thread) noexcept {
  const SpinGuard guard{team.slots_lock};
  thread.slot_previous = nullptr;
  thread.slot_next = team.first_slot;
  if (team.first_slot != nullptr) {
    team.first_slot->slot_previous = &thread;
  }
  team.first_slot = &thread;
}

namespace {

/// Under slots_lock. What is in no list has no neighbours.
void unlink(TeamState& team, Thread& thread) noexcept {
  (thread.slot_previous == nullptr ? team.first_slot : thread.slot_previous->slot_next) =
      thread.slot_next;
  if (thread.slot_next != nullptr) {
    thread.slot_next->slot_previous = thread.slot_previous;
  }
  thread.slot_previous = thread.slot_next = nullptr;
}

}  // namespace

void unregister_slot(TeamState& team, Thread& thread) noexcept {
  const SpinGuard guard{team.slots_lock};
  unlink(team, thread);
}

void unlist_all(TeamState& team) noexcept {
  const SpinGuard guard{team.slots_lock};
  while (team.first_slot != nullptr) {
    unlink(team, *team.first_slot);
  }
}

void list_adopted(const Team& team, Thread& thread) noexcept {
  register_slot(*team.state(), thread);
}

void unlist_adopted(const Team& team, Thread& thread) noexcept {
  TeamState& state = *team.state();
  const SpinGuard guard{state.slots_lock};
  if (thread.slot_previous != nullptr || state.first_slot == &thread) {
    unlink(state, thread);
  }
}

std::size_t list_threads(const Team& team, std::span<ThreadInfo> infos,
                         Measuring measuring) noexcept {
  TeamState& state = *team.state();
  std::size_t count = 0;
  const SpinGuard guard{state.slots_lock};
  for (Thread* thread = state.first_slot; thread != nullptr; thread = thread->slot_next) {
    ThreadInfo info;
    if (read_info(*thread, info)) {
      if (count < infos.size()) {
        // One that has become another thread meanwhile is measured as well as this one.
        info.cpu_ns = measuring == Measuring::yes ? measure(*thread) : 0;
        infos[count] = info;
      }
      ++count;
    }
  }
  return count;
}

}  // namespace sterna::threads
