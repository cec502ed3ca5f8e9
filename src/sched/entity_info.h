// What the engine tells people of its entities: Engine::list().
#pragma once

#include <cstdint>
#include <string>

#include "sched/policy.h"

namespace sterna::sched {

/// One entity of a tree at a moment.
struct EntityInfo {
  std::uint32_t depth = 0;  // Bubbles around it.
  bool is_bubble = false;
  std::string name;                    // May be empty.
  std::string place;                   // "numa 0", "aside": where it is queued next.
  std::string state;                   // Of a thread: running, ready, waiting.
  std::uint32_t processor = kNoPlace;  // Number of the one on which it runs or ran last.
  std::uint8_t priority = kPriorityNormal;
  std::uint64_t key = 0;     // Tells it from all others at two looks: the handle of a bubble, the
                             // number of a thread.
  std::uint64_t holder = 0;  // Key of the bubble around it; 0: none.
  std::string last_place;    // "pu 3"; of a bubble the smallest with all of its threads; or empty.
  Stats stats;               // Of it, and all that it holds.
  std::uint64_t cpu_ns = 0;  // Of a thread: ThreadLook.
};

}  // namespace sterna::sched
