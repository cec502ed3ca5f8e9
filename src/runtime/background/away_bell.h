// How who progresses in the place of a program sleeps, and what wakes it: the program that goes
// away, a peer that waits, or what arrives.
//
// Where all peers see a flag (net::AbsenceFlag) they ring by a futex, and nothing else is needed.
// Where something may arrive of which nobody tells but the kernel, the thread waits for what
// `descriptor` becomes readable for, while the program is away: arm() says so. An event disarms, so
// that it wakes the thread once; the program, which takes what arrives by itself when it is back,
// disarms, too. To arm and to disarm is a short system call each, which wakes nobody: to wake
// a thread on another processor costs its waker several microseconds.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/syscall.h"

namespace sterna::runtime {

class AwayBell {
 public:
  static constexpr std::uint64_t kForever = ~std::uint64_t{0};

  /// `descriptor` -1: the flag is enough. It and the flag live longer.
  AwayBell(std::atomic<std::uint32_t>& flag, int descriptor) noexcept
      : flag_{flag}, descriptor_{descriptor} {}
  AwayBell(const AwayBell&) = delete;
  AwayBell& operator=(const AwayBell&) = delete;

  /// Before the thread starts. False: the system refuses what it needs.
  [[nodiscard]] bool open() noexcept;

  // From anywhere.

  /// The thread wakes, or does not fall asleep.
  void ring() noexcept;
  /// From now on what arrives, or has arrived, rings once.
  void arm() noexcept;
  void disarm() noexcept;
  /// Whether nobody has heard it since arm(). A hint to all but who orders it by other means.
  [[nodiscard]] bool is_armed() const noexcept {
    return is_armed_.load(std::memory_order_relaxed);
  }

  /// By the thread: until it is rung for, but no longer than that. False: the time is over.
  [[nodiscard]] bool sleep(std::uint64_t ns) noexcept;

 private:
  [[nodiscard]] bool sleep_for_flag(std::uint64_t ns) noexcept;
  void watch(std::uint32_t events) noexcept;

  std::atomic<std::uint32_t>& flag_;
  const int descriptor_;
  FileDescriptor epoll_;  // Of `descriptor_` and `rung_`.
  FileDescriptor rung_;
  // A hint: whether it is worth while to disarm.
  std::atomic<bool> is_armed_{false};
};

}  // namespace sterna::runtime
