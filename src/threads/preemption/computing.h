// For tests: threads that compute, from which only preemption takes their worker.
#pragma once

#include <cstdint>

#include "threads/team.h"

namespace sterna::threads {

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr ThreadOptions kUser{.is_user_code = true};

/// Computes until `condition()`: no call that switches.
template <typename Condition>
void compute_until(Condition&& condition) {
  while (!condition()) {
    for (int i = 0; i < 100; ++i) {
      asm volatile("");
    }
  }
}

}  // namespace sterna::threads
