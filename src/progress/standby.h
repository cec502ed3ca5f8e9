// How long a worker without work stays away from the network, for which kernel threads that wait
// (callers) look as well. A worker that sleeps for the network while a caller waits is woken by the
// system, or by a peer's ring, for whatever comes, finds that the caller has taken it, and falls
// asleep again: on this processor, or on that of the peer. Worse, a caller that wants to sleep has
// to do so elsewhere, and is woken by who was woken. The worker is there for what comes while no
// caller looks, and nothing tells it when that begins: to tell would cost a wake for each wait.
//
// So it learns: who was woken in vain stays away for a while, twice as long each time; who was
// needed comes back sooner the next time, and who found work at once. What comes for nobody waits
// for that while at most, once. A caller that leaves something which needs somebody soon calls.
//
// All that several threads write is relaxed: hints. Whoever believes an old one sleeps in the wrong
// place for a while, and wakes there as any other. What is the worker's is ordered by who hands the
// watch over (threads/wait/sleep.cc: has_watcher).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/cpu.h"

namespace sterna::progress {

class Standby {
 public:
  static constexpr std::uint64_t kPauseNsMin = 50'000;
  static constexpr std::uint64_t kPauseNsMax = 4'000'000;
  // While one sleep of a caller lasts, who calls at the end if that was long.
  static constexpr std::uint64_t kPauseNsLong = 16'000'000;
  static constexpr std::uint64_t kLongNs = 500'000;
  // So many times who found work may be woken in vain.
  static constexpr std::uint32_t kCredit = 4;

  // By the worker that sleeps for the network, one at a time.

  void was_needed() noexcept { pause_ns_ /= 4; }
  void was_woken_in_vain(std::uint64_t now_ns) noexcept {
    const std::uint32_t credit = credit_.load(std::memory_order_relaxed);
    if (credit != 0) {
      credit_.store(credit - 1, std::memory_order_relaxed);
    } else {
      stay_away(now_ns, kPauseNsMax);
    }
  }
  /// A caller, in the sleep of that number.
  void found_a_sleeper(std::uint64_t now_ns, std::uint64_t sleep) noexcept {
    stay_away(now_ns, sleep == found_sleep_ ? kPauseNsLong : kPauseNsMax);
    found_sleep_ = sleep;
  }
  /// For how long it stays away, asleep on `word`; 0: no longer.
  [[nodiscard]] std::uint64_t absence_ns(const std::atomic<std::uint32_t>& word,
                                         std::uint64_t now_ns) noexcept {
    if (is_wanted_.load(std::memory_order_relaxed) ||
        credit_.load(std::memory_order_relaxed) != 0) {
      is_wanted_.store(false, std::memory_order_relaxed);
      pause_ns_ = 0;
      back_ns_ = 0;
    }
    const bool is_away = now_ns < back_ns_;
    away_.store(is_away ? &word : nullptr, std::memory_order_relaxed);
    return is_away ? back_ns_ - now_ns : 0;
  }

  /// Any worker that slept. What wakes it in vain wakes it early for the threads it is given then:
  /// a message is often followed by one that serves it.
  void note_work() noexcept {
    credit_.store(kCredit, std::memory_order_relaxed);
    away_.store(nullptr, std::memory_order_relaxed);
  }

  // By callers.

  /// From a wait's second look on, until it ends.
  void begin_to_look() noexcept { lookers_.fetch_add(1, std::memory_order_relaxed); }
  void cease_to_look() noexcept { lookers_.fetch_sub(1, std::memory_order_relaxed); }
  /// Null: no worker is away. Else it comes when it is woken on this word; one that goes away at
  /// this moment comes after its pause, and of one that is gone for ever an address is left at
  /// which the system finds nobody.
  [[nodiscard]] const std::atomic<std::uint32_t>* call() noexcept {
    const std::atomic<std::uint32_t>* const away = away_.load(std::memory_order_relaxed);
    if (away != nullptr) [[unlikely]] {
      is_wanted_.store(true, std::memory_order_relaxed);
    }
    return away;
  }

  /// A hint.
  [[nodiscard]] bool is_looked_after() const noexcept {
    return lookers_.load(std::memory_order_relaxed) != 0;
  }

 private:
  void stay_away(std::uint64_t now_ns, std::uint64_t most_ns) noexcept {
    pause_ns_ = std::clamp(2 * pause_ns_, kPauseNsMin, most_ns);
    back_ns_ = now_ns + pause_ns_;
  }

  alignas(kCacheLineBytes) std::atomic<std::uint32_t> lookers_{0};
  alignas(kCacheLineBytes) std::atomic<const std::atomic<std::uint32_t>*> away_{nullptr};
  std::atomic<bool> is_wanted_{false};
  std::atomic<std::uint32_t> credit_{0};
  std::uint64_t pause_ns_ = 0;  // The worker's, as the next one.
  std::uint64_t back_ns_ = 0;
  std::uint64_t found_sleep_ = 0;
};

}  // namespace sterna::progress
