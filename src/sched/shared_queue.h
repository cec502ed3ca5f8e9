// The run queue of one place of the machine, shared by the workers below it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotate.h"
#include "base/cpu.h"
#include "base/spin_lock.h"
#include "threads/run_queue.h"

namespace sterna::sched {

/// First in, first out. The count is read without the lock, so that empty places cost one load.
class alignas(kCacheLineBytes) SharedQueue {
 public:
  void push(threads::Thread& thread) noexcept {
    const SpinGuard guard{lock_};
    queue_.push_back(thread);
    // Sequentially consistent, against a worker that says "I sleep" and then asks has_work().
    count_.store(queue_.count(), std::memory_order_seq_cst);
  }
  /// Null: empty.
  threads::Thread* pop() noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) {
      return nullptr;
    }
    const SpinGuard guard{lock_};
    threads::Thread* const thread = queue_.pop_front();
    count_.store(queue_.count(), std::memory_order_relaxed);
    return thread;
  }
  [[nodiscard]] bool has_any() const noexcept {
    return count_.load(std::memory_order_seq_cst) != 0;
  }

 private:
  SpinLock lock_;
  threads::RunQueue queue_;  // Guard: lock_.
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace sterna::sched
