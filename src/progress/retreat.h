// Kernel threads that wait (callers) where workers need what comes. A caller that looks takes a
// request from the network and has a worker serve it: two threads wake, one after the other, for
// what one can do, and if the peer looks, too, three want two processors. So a caller that sees the
// workers find work again and again while nothing comes for itself retreats: it sleeps on its own
// word, where it is woken for what it waits for, whoever takes that from the network.
//
// Nobody promises to look in its place. So it comes back after a while, stays if nobody has looked
// meanwhile, as where the workers compute, and retreats later the next time; if somebody has it is
// away for twice as long.
//
// Of a process; all relaxed: hints. A number that is lost, or an old one, makes a caller look for
// longer than it need, or come back once in vain.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sterna::progress {

class Retreat {
 public:
  static constexpr std::uint64_t kPauseNsMin = 50'000;
  static constexpr std::uint64_t kPauseNsMax = 4'000'000;
  // So often the workers find work during one wait before it retreats.
  static constexpr std::uint32_t kFoundMin = 2;
  static constexpr std::uint32_t kFoundMax = 64;

  enum class Meanwhile : std::uint8_t {
    nobody_looked,
    somebody_looked,
    nothing_came,  // To somebody who looked, or sleeps for the network.
  };

  /// What has come is work for a worker. From any thread.
  void note_work() noexcept {
    found_.store(found_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// One wait of a caller, which owns it.
  class Wait {
   public:
    explicit Wait(Retreat& retreat) noexcept : retreat_{retreat}, begin_{retreat.found()} {}

    [[nodiscard]] bool is_due() const noexcept {
      return retreat_.found() - begin_ >= retreat_.limit_.load(std::memory_order_relaxed);
    }
    /// For how long at most.
    [[nodiscard]] std::uint64_t pause_ns() const noexcept { return pause_ns_; }
    /// It is back, and what it waits for has not come.
    void is_back(Meanwhile meanwhile) noexcept {
      if (meanwhile == Meanwhile::somebody_looked) {
        pause_ns_ = std::min(2 * pause_ns_, kPauseNsMax);
        retreat_.limit_.store(kFoundMin, std::memory_order_relaxed);
        return;
      }
      if (meanwhile == Meanwhile::nobody_looked) {
        const std::uint32_t limit = retreat_.limit_.load(std::memory_order_relaxed);
        retreat_.limit_.store(std::min(2 * limit, kFoundMax), std::memory_order_relaxed);
      }
      pause_ns_ = kPauseNsMin;
      begin_ = retreat_.found();
    }

   private:
    Retreat& retreat_;
    std::uint32_t begin_;
    std::uint64_t pause_ns_ = kPauseNsMin;
  };

 private:
  [[nodiscard]] std::uint32_t found() const noexcept {
    return found_.load(std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> found_{0};
  std::atomic<std::uint32_t> limit_{kFoundMin};
};

}  // namespace sterna::progress
