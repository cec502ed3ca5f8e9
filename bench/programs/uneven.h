// The loop of the row loop.uneven: turn k takes k steps, each of which needs the one before.
#pragma once

#include <cstdint>

constexpr std::uint64_t kUnevenTurns = 4000;

inline void do_uneven(std::uint64_t begin, std::uint64_t end) {
  for (; begin < end; ++begin) {
    std::uint64_t value = begin;
    for (std::uint64_t step = 0; step < begin; ++step) {
      value = value * 6364136223846793005 + 1442695040888963407;
    }
    asm volatile("" : : "r"(value));
  }
}
