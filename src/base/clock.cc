// Reads the clocks of the system, and measures the cycle counter against them.
#include "base/clock.h"

#include <ctime>

namespace sterna {

namespace {

std::uint64_t read_clock(clockid_t id) noexcept {
  timespec time{};
  clock_gettime(id, &time);  // Cannot fail for these two clocks.
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

ClockReading read_clocks_at_once() noexcept {
  ClockReading best{};
  std::uint64_t best_gap = ~std::uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = cycles();
    const std::uint64_t ns = now_ns();
    const std::uint64_t after = cycles();
    if (after - before < best_gap) {
      best_gap = after - before;
      best = {ns, before + (after - before) / 2};
    }
  }
  return best;
}

std::uint64_t now_ns() noexcept {
  return read_clock(CLOCK_MONOTONIC);
}

std::uint64_t thread_cpu_ns() noexcept {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

CycleRate calibrate_cycles(std::uint64_t spin_ns) noexcept {
  const ClockReading first = read_clocks_at_once();
  while (now_ns() - first.ns < spin_ns) {
  }
  const ClockReading last = read_clocks_at_once();
  const std::uint64_t count = last.cycles - first.cycles;
  return CycleRate{
      count == 0 ? 1.0 : static_cast<double>(last.ns - first.ns) / static_cast<double>(count)};
}

}  // namespace sterna
