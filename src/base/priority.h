// Priorities of threads and bubbles: a ladder of levels in classes, higher ones first. Queues have
// a list for each level and a bit for each list, so more levels cost nobody anything; the normal
// level in the middle is the one that queues are quick with.
#pragma once

#include <cstdint>

namespace sterna {

inline constexpr std::uint8_t kPriorityIdle = 0;
inline constexpr std::uint8_t kPriorityLowBatch = 1;
inline constexpr std::uint8_t kPriorityBatch = 2;
inline constexpr std::uint8_t kNiceMax = 8;  // Levels of the normal class above and below normal.
inline constexpr std::uint8_t kPriorityNormal = kPriorityBatch + 1 + kNiceMax;
inline constexpr std::uint8_t kPriorityRealTime = kPriorityNormal + kNiceMax + 1;
inline constexpr std::uint8_t kRealTimeLevels = 4;
inline constexpr std::uint8_t kPrioritySystem = kPriorityRealTime + kRealTimeLevels;
inline constexpr std::uint8_t kPriorityCount = kPrioritySystem + 1;
static_assert(kPriorityCount < 31, "queues have a bit for each, and one to be closed");

/// Levels of the normal class, nice ones and others, whose threads compute: they come first where
/// somebody gives way, and take the processor from none of their class before its slice is over.
constexpr bool is_of_normal_class(std::uint8_t priority) noexcept {
  return priority > kPriorityBatch && priority < kPriorityRealTime;
}

/// Whether what waits takes the processor at once from what runs there.
constexpr bool interrupts(std::uint8_t waiting, std::uint8_t running) noexcept {
  return waiting > running && !(is_of_normal_class(waiting) && is_of_normal_class(running));
}

}  // namespace sterna
