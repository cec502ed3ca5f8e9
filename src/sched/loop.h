// Parallel loops: the iterations of a loop, handed out by a scheme of loop_chunks.h to threads of a
// team, one on each worker, or in a bubble that the policy places.
#pragma once

#include <cstdint>

#include "sched/loop_chunks.h"
#include "sched/scheduler.h"
#include "threads/team.h"

namespace sterna::sched {

struct LoopOptions {
  LoopScheme scheme = LoopScheme::guided;
  std::uint64_t chunk = 0;  // As in LoopPlan, as are the next two.
  std::uint64_t first = 0;
  std::uint32_t group = 0;
  std::uint32_t parties = 0;  // Threads that share the loop, the caller among them; 0: of workers.
  // Not null: those other than the caller are a bubble of this scheduler. Else each is bound to a
  // worker of its own, in turn.
  Scheduler* scheduler = nullptr;
  std::size_t stack_bytes = threads::kDefaultStackBytes;
  bool is_user_code = false;  // The body calls code of the program, by a UserScope of its own.
};

/// Runs iterations [begin, end) of the caller's loop: in a thread of it.
using LoopBody = void (*)(void* argument, std::uint64_t begin, std::uint64_t end);

/// Runs the loop over [begin, end) and returns when all of it is done: each iteration once. Never
/// fails: where a thread cannot start, the others and the caller do its part. From user threads
/// and kernel threads; loops may nest. Switches.
void run_loop(threads::Team& team, std::uint64_t begin, std::uint64_t end,
              const LoopOptions& options, LoopBody body, void* argument) noexcept;

/// body(i) for each i in [begin, end).
template <typename Body>
void parallel_for(threads::Team& team, std::uint64_t begin, std::uint64_t end, Body&& body,
                  const LoopOptions& options = {}) noexcept {
  run_loop(
      team, begin, end, options,
      [](void* callable, std::uint64_t first, std::uint64_t last) {
        for (auto& its = *static_cast<std::remove_reference_t<Body>*>(callable); first < last;
             ++first) {
          its(first);
        }
      },
      const_cast<std::remove_const_t<std::remove_reference_t<Body>>*>(&body));
}

}  // namespace sterna::sched
