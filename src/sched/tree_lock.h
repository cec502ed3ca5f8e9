// The locks of the tree of entities: one for each holder, and all of them.
//
// Paper 003 gives each holder a lock, for what comes and goes all the time (§4.3), and lets who
// writes a scheduler content himself with all of them (§3.3: all_lock). So here: a thread that is
// born into a bubble or ends in one takes the lock of that bubble; an event of the policy, and
// whatever else looks at the tree or changes more of it, takes all, which is called the lock of the
// engine. Below them is the lock of a queue. Nobody takes one lock of a holder with another one
// held: where a policy looks at many bubbles before it moves one there is no order to keep, and it
// sees no change but its own.
//
// Bubbles share the locks of a small table: to take all is to take one more, and to look at each of
// the table once. Nor is a lock gone when its bubble is.
//
// No two of them at once. try_lock_holder() takes its lock (1) and then looks whether somebody has
// all (2); lock_all() says that it has all (3) and then waits for each lock that is taken (4). All
// are sequentially consistent: either 1 comes before 4, which waits for what was done under that
// lock and sees it, or 3 comes before 2, which gives back what it has not used.
// test: tree_lock_model_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/annotate.h"
#include "base/backoff.h"
#include "base/cpu.h"

namespace sterna::sched {

class STERNA_LOCK_TYPE TreeLock {
 public:
  explicit TreeLock(std::size_t worker_count)
      : bits_{static_cast<unsigned>(
            std::bit_width(2 * std::clamp<std::size_t>(worker_count, 2, 32) - 1))},
        holders_{std::make_unique<Holders[]>(std::size_t{1} << bits_)} {}
  TreeLock(const TreeLock&) = delete;
  TreeLock& operator=(const TreeLock&) = delete;

  void lock_all() noexcept STERNA_ACQUIRES() {
    Backoff backoff;
    while (all_.exchange(true, std::memory_order_seq_cst)) {  // (3)
      while (all_.load(std::memory_order_relaxed)) {
        backoff.pause();
      }
    }
    for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i) {
      while (holders_[i].is_taken.load(std::memory_order_seq_cst)) {  // (4)
        backoff.pause();
      }
    }
  }
  void unlock_all() noexcept STERNA_RELEASES() { all_.store(false, std::memory_order_release); }

  /// False: somebody has all of them, and may have them for long; wait in lock_all(). The holder
  /// is not looked at: it may be gone.
  [[nodiscard]] bool try_lock_holder(const void* holder) noexcept STERNA_LOCKS_UNCHECKED {
    std::atomic<bool>& is_taken = of(holder).is_taken;
    Backoff backoff;
    while (is_taken.exchange(true, std::memory_order_seq_cst)) {  // (1)
      while (is_taken.load(std::memory_order_relaxed)) {
        backoff.pause();
      }
    }
    if (!all_.load(std::memory_order_seq_cst)) {  // (2)
      return true;
    }
    is_taken.store(false, std::memory_order_release);
    return false;
  }
  void unlock_holder(const void* holder) noexcept STERNA_LOCKS_UNCHECKED {
    of(holder).is_taken.store(false, std::memory_order_release);
  }

  /// One more is held by `holder`, whose lock or all are the caller's; or one less.
  void count(const void* holder, bool is_more) noexcept {
    std::uint32_t& held = of(holder).held;
    held += is_more ? 1 : ~0U;
    if ((is_more ? held : held + 1) % kCountStep == 0) {
      held_.fetch_add(is_more ? kCountStep : ~0U * kCountStep, std::memory_order_relaxed);
    }
  }
  /// What all hold together, less than a step off for each lock: not a line that all births share.
  [[nodiscard]] std::uint32_t held_about() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kCountStep = 64;

  struct alignas(kCacheLineBytes) Holders {
    std::atomic<bool> is_taken{false};
    std::uint32_t held = 0;  // Guard: is_taken, or all_.
  };

  [[nodiscard]] Holders& of(const void* holder) const noexcept {
    // Neighbours in memory get different ones: the upper bits of a product by 2^64 / phi.
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(holder));
    return holders_[(address / alignof(std::max_align_t) * 0x9e37'79b9'7f4a'7c15) >> (64 - bits_)];
  }

  const unsigned bits_;  // 4 to 64 locks: two for each worker, at least.
  const std::unique_ptr<Holders[]> holders_;
  alignas(kCacheLineBytes) std::atomic<bool> all_{false};
  std::atomic<std::uint32_t> held_{0};  // Relaxed: says how much memory events may want.
};

/// All of the tree, the plan and the policy.
class STERNA_SCOPED_LOCK TreeGuard {
 public:
  explicit TreeGuard(TreeLock& lock) noexcept STERNA_ACQUIRES(lock) : lock_{lock} {
    lock_.lock_all();
  }
  ~TreeGuard() STERNA_RELEASES() { lock_.unlock_all(); }
  TreeGuard(const TreeGuard&) = delete;
  TreeGuard& operator=(const TreeGuard&) = delete;

 private:
  TreeLock& lock_;
};

/// What one holder holds, if nobody has all.
class HolderGuard {
 public:
  HolderGuard(TreeLock& lock, const void* holder) noexcept
      : lock_{lock.try_lock_holder(holder) ? &lock : nullptr}, holder_{holder} {}
  ~HolderGuard() {
    if (lock_ != nullptr) {
      lock_->unlock_holder(holder_);
    }
  }
  HolderGuard(const HolderGuard&) = delete;
  HolderGuard& operator=(const HolderGuard&) = delete;

  [[nodiscard]] bool is_held() const noexcept { return lock_ != nullptr; }

 private:
  TreeLock* const lock_;
  const void* const holder_;
};

}  // namespace sterna::sched
