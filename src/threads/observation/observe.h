// What others may see of a rank's thread that goes on meanwhile: for tools. Of all other threads
// roster.h tells.
#pragma once

#include <cstdint>
#include <string_view>

#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::threads {

/// Whether an accounted thread runs. From anywhere, a hint.
[[nodiscard]] bool is_taking_its_turn(const Thread& thread) noexcept;

/// One word: running, ready, waiting. Of an accounted thread, which does not end and does not leave
/// this node meanwhile. From anywhere.
[[nodiscard]] inline std::string_view observe_activity(const Thread& thread) noexcept {
  // Relaxed: words of different moments, for people.
  if (is_taking_its_turn(thread)) {
    return "running";
  }
  const Activity activity = thread.activity.load(std::memory_order_relaxed);
  return activity == Activity::blocked ? "waiting" : "ready";
}

/// Where it runs or ran last. As above.
[[nodiscard]] inline std::uint32_t observe_worker(const Thread& thread) noexcept {
  const Worker* const worker = thread.worker.load(std::memory_order_relaxed);
  return worker != nullptr ? worker_index(*worker) : 0;
}

}  // namespace sterna::threads
