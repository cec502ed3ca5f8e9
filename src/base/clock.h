// Time: the monotonic clock, the same behind an interface so that tests drive it, and the cycle
// counter. Nothing here reads the date.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};  // A deadline that does not come.

/// CLOCK_MONOTONIC: the same in all processes of a host, through the vDSO (about 20 ns).
[[nodiscard]] std::uint64_t now_ns() noexcept;

/// Processor time of the calling kernel thread (CLOCK_THREAD_CPUTIME_ID). A system call.
[[nodiscard]] std::uint64_t thread_cpu_ns() noexcept;

/// Where a layer gets its time from. Any thread may call it.
class Clock {
 public:
  Clock() noexcept = default;
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  [[nodiscard]] virtual std::uint64_t now_ns() noexcept = 0;
};

class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() noexcept override { return sterna::now_ns(); }
};

/// Stands still until it is told to go on.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::uint64_t start_ns = 0) noexcept : time_ns_{start_ns} {}
  // Relaxed: a time orders nothing.
  [[nodiscard]] std::uint64_t now_ns() noexcept override {
    return time_ns_.load(std::memory_order_relaxed);
  }
  void advance(std::uint64_t by_ns) noexcept {
    time_ns_.fetch_add(by_ns, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> time_ns_;
};

/// The cycle counter of the processor: constant rate, equal on all cores of a machine (invariant
/// TSC; the generic timer on ARM). Not ordered with the instructions around it.
[[nodiscard]] inline std::uint64_t cycles() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return now_ns();
#endif
}

/// The clock and the cycle counter, as close together as we can get: the tightest of a few, so that
/// an interrupt between the two does not count.
struct ClockReading {
  std::uint64_t ns;
  std::uint64_t cycles;
};
[[nodiscard]] ClockReading read_clocks_at_once() noexcept;

/// How long a cycle is. Made by calibrate_cycles(), then constant.
class CycleRate {
 public:
  constexpr explicit CycleRate(double ns_per_cycle) noexcept : ns_per_cycle_{ns_per_cycle} {}
  [[nodiscard]] constexpr double ns_per_cycle() const noexcept { return ns_per_cycle_; }
  [[nodiscard]] constexpr std::uint64_t to_ns(std::uint64_t count) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(count) * ns_per_cycle_);
  }
  [[nodiscard]] constexpr std::uint64_t to_cycles(std::uint64_t ns) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ns) / ns_per_cycle_);
  }

 private:
  double ns_per_cycle_;
};

/// Compares the cycle counter with the clock during `spin_ns` of busy waiting: 200 us give an error
/// below 0.1 %.
[[nodiscard]] CycleRate calibrate_cycles(std::uint64_t spin_ns = 200'000) noexcept;

}  // namespace sterna
