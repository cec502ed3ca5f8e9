// What a rank's code does around a direct switch (direct.h), beside it. Of the current user thread,
// which is in the runtime.
#pragma once

#include <cstdint>

#include "threads/worker.h"

namespace sterna::threads {

/// `me` is perhaps about to leave directly: whether it is to call look_around() first.
[[nodiscard]] inline bool is_look_due(const Thread& me) noexcept {
  return me.worker.load(std::memory_order_relaxed)->countdown.load(std::memory_order_relaxed) <= 1;
}
/// At timers and the network, as at every n-th switch. On the runtime's thread pointer.
inline void look_around(Thread& me) noexcept {
  me.worker.load(std::memory_order_relaxed)->slow_point();
}

/// A word from who leaves directly to who goes on there. It lies where a switch that has something
/// to do afterwards has the argument of that: a direct one has none, so nobody reads it as that;
/// and after a switch of that kind the word is any.
inline void leave_word(Thread& me, std::uintptr_t word) noexcept {
  me.worker.load(std::memory_order_relaxed)->post_argument = reinterpret_cast<void*>(word);
}
[[nodiscard]] inline std::uintptr_t word_left(const Thread& me) noexcept {
  return reinterpret_cast<std::uintptr_t>(me.worker.load(std::memory_order_relaxed)->post_argument);
}

/// The current thread goes on at `worker`, of its team, when that has time for it. Stays where it
/// is if it is bound, or placed by a policy, or `worker` is disabled or its own; false then.
/// Switches.
bool go_to(Worker& worker) noexcept;

}  // namespace sterna::threads
