// A kernel thread that ticks while all workers compute, for what must not wait until one of them
// makes a call: today a poll of the network, later an order to give way to another thread.
//
// No progress thread: it polls only after a whole tick in which nobody else did, once, and for a
// bounded time; while a worker has nothing to run it sleeps without a deadline. In a kernel that is
// the work of the timer interrupt (bottom halves).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <pthread.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/result.h"

namespace sterna::threads {

/// Upcalls of a Ticker, on its kernel thread, which is no worker, with no lock held.
class TickClient {
 public:
  /// Whether ticks are of use now. False may turn to true only before a Ticker::kick(), ordered
  /// sequentially consistent with the reading here.
  [[nodiscard]] virtual bool wants_ticks() noexcept = 0;

  /// One tick. Returns after how many intervals, from when it has returned, or a little less, the
  /// next one is to come, at least 1; the ticker comes for whom wants it first. Must not switch or
  /// block.
  virtual std::uint32_t tick(std::uint64_t now_ns) noexcept = 0;

 protected:
  ~TickClient() = default;
};

struct TickerOptions {
  std::uint64_t interval_ns = 4'000'000;  // 0: it is led, and ticks once after each lead().
  // A tick may come so much before its time, less than interval_ns, with another interrupt of its
  // processor, as that of the system's own clock: a timer interrupt of its own costs who computes
  // there as much as the tick.
  std::uint64_t early_ns = 0;
  std::span<TickClient* const> clients;   // They outlive the ticker.
};

class Ticker {
 public:
  explicit Ticker(const TickerOptions& options) noexcept;
  /// As finish().
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// Starts the kernel thread, which ticks: sterna-tick, or sterna-poll if it is led. It takes no
  /// signal but its own faults. Once.
  Result<> start() noexcept;

  /// A client may want ticks now. From anywhere; one load unless the ticker rests.
  void kick() noexcept {
    if (word_.load(std::memory_order_seq_cst) == kResting) [[unlikely]] {  // (4)
      wake();
    }
  }
  /// Of one that is led: a tick, soon. From a tick of another one, or from anywhere.
  void lead() noexcept { wake(); }

  /// No tick begins after the one that may be under way. Does not wait. From anywhere.
  void stop() noexcept;

  /// stop(), and waits for the thread. Kicks are welcome still. Not within a tick.
  void finish() noexcept;

  /// For tests. It sleeps until a kick.
  [[nodiscard]] bool is_resting() const noexcept {
    return word_.load(std::memory_order_seq_cst) == kResting;
  }

 private:
  enum : std::uint32_t { kTicking, kResting, kStopped };

  static void* thread_main(void* ticker) noexcept;
  void run() noexcept;
  void run_led() noexcept;
  std::uint32_t tick_all(std::uint64_t time_ns) noexcept;
  void rest() noexcept;
  [[nodiscard]] bool any_wants_ticks() noexcept;
  void wake() noexcept;

  const std::uint64_t interval_ns_;
  const std::uint64_t early_ns_;
  const std::vector<TickClient*> clients_;
  pthread_t thread_{};  // Constant after start(), as the next one.
  bool has_thread_ = false;
  // A futex. Ticking to resting: by the thread itself; back: by who kicks; stopped for ever.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> word_;
};

}  // namespace sterna::threads
