// Lanes: tracks of a trace for calls that are no thread's or rank's own, one after the other, as
// those into a network driver (net/drivers/decorators/trace.cc). In the file a lane is a thread
// that never runs; its calls nest.
#pragma once

#include "base/trace_format.h"

namespace sterna::trace {

inline constexpr std::uint64_t kLaneBit = std::uint64_t{1} << 55;

/// `number` is of the node, and below 2^32.
[[nodiscard]] constexpr std::uint64_t lane_key(std::uint32_t number) noexcept {
  return key_of(KeyClass::thread, kLaneBit | number);
}
[[nodiscard]] constexpr bool is_lane(std::uint64_t key) noexcept {
  return class_of(key) == KeyClass::thread && (key & kLaneBit) != 0;
}

}  // namespace sterna::trace
