// Work that a thread which computes leaves to a worker that is awake and has nothing to run (paper
// 004 §4.2): the sending of a message, as a rule.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/backoff.h"
#include "base/cpu.h"

namespace sterna::threads {

/// Whoever hands work over has put it where the taker finds it, then asks whether somebody is there
/// to take it; a worker says that it searches, and looks once more after it has said that it does
/// no longer. So work is never left lying while all compute or sleep.
///
/// The order: the giver sets is_handed_, then reads searchers_; the last searcher takes its leave
/// from searchers_, then reads is_handed_. All four are sequentially consistent: either the giver
/// sees nobody, and does the work itself, or the leaving searcher sees the work. One that is not
/// the last leaves it to the others, who look at each turn. tests: hand_over_model_test.cc.
class HandOver {
 public:
  /// Takes all that has been handed over. By several threads at once.
  using Work = void (*)(void* object) noexcept;

  /// Before anything is handed over.
  void serve(Work work, void* object) noexcept {
    object_ = object;
    work_.store(work, std::memory_order_seq_cst);
  }
  /// When it returns nobody is inside the work, or will be.
  void stop() noexcept {
    work_.store(nullptr, std::memory_order_seq_cst);
    Backoff backoff;
    while (takers_.load(std::memory_order_seq_cst) != 0) {
      backoff.pause();
    }
  }

  /// A worker is awake without anything to run. A hint. Any thread.
  [[nodiscard]] bool has_taker() const noexcept {
    return searchers_.load(std::memory_order_relaxed) != 0;
  }
  /// The work is where its taker finds it. False: nobody takes it, the caller has to. Any thread.
  [[nodiscard]] bool hand() noexcept {
    is_handed_.store(true, std::memory_order_seq_cst);
    return searchers_.load(std::memory_order_seq_cst) != 0;
  }

  // By workers.

  void begin_search() noexcept { searchers_.fetch_add(1, std::memory_order_seq_cst); }
  void end_search() noexcept {
    if (searchers_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
      take();
    }
  }
  /// At each turn of a search.
  void take() noexcept {
    if (!is_handed_.load(std::memory_order_seq_cst)) [[likely]] {
      return;
    }
    // Against stop(): either it sees us inside, or we see that there is no work any more.
    takers_.fetch_add(1, std::memory_order_seq_cst);
    const Work work = work_.load(std::memory_order_seq_cst);
    if (work != nullptr && is_handed_.exchange(false, std::memory_order_seq_cst)) {
      work(object_);
    }
    takers_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  // Written at each begin and end of a search, read by who sends.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> searchers_{0};
  alignas(kCacheLineBytes) std::atomic<bool> is_handed_{false};
  std::atomic<std::uint32_t> takers_{0};
  std::atomic<Work> work_{nullptr};
  void* object_ = nullptr;  // Written before work_.
};

}  // namespace sterna::threads
