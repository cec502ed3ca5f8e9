// User threads that wait until a file descriptor can be read or written, as a source of Progress:
// no kernel thread waits with them, and they can be cancelled.
//
// All descriptors are in one epoll set, each armed for one event (EPOLLONESHOT) of what its waiters
// want; it stays in the set, at rest, when nobody waits for it, and leaves it when it is closed.
// Waiters hang in buckets by the number of their descriptor. The lock of a bucket makes "who waits"
// and "what is armed" one: who joins arms for all that wait there, under the lock; who fires takes
// those that are satisfied, and arms for the rest, under the same. An event that comes before the
// waiter is in the list is an event of a descriptor that is armed later: epoll reports the state at
// the time of arming (it is not edge-triggered), so none is missed.
//
// A descriptor may stay armed with nobody who waits for it: its waiter has left, but it was closed
// meanwhile and what it named lives on under another number; or somebody joined, and armed it
// again, between the look that found it ready and the firing that woke him. When that is ready the
// set is, and nobody would sleep any more, nor poll() look, which does not while nobody waits: so
// each sleep is preceded by a look, which puts it to rest.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/annotate.h"
#include "base/kernel_lock.h"
#include "base/result.h"
#include "base/syscall.h"
#include "progress/progress.h"
#include "progress/source.h"
#include "threads/sync/semaphore.h"

namespace sterna::progress {

class Readiness final : public Source {
 public:
  /// Polled by `progress` until it is destroyed.
  static Result<std::unique_ptr<Readiness>> open(Progress& progress) noexcept;
  /// Nobody waits (check).
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  enum class Outcome : std::uint8_t {
    ready,      // Perhaps: somebody may have been faster. Errors and hang-ups count as ready.
    timed_out,  // The deadline (of the monotonic clock) came first.
    always,     // A file that is always ready: it cannot be waited for.
    failed,     // No such descriptor, or no memory in the kernel: `error` says which.
  };
  /// For a user thread: waits for one of `events` (EPOLLIN...). A cancellation point. Switches.
  Outcome wait(int descriptor, std::uint32_t events, std::uint64_t deadline_ns,
               int& error) noexcept;

  std::uint32_t poll() noexcept override;
  /// Looks, whatever poll() thinks of it.
  bool prepare_sleep() noexcept override;
  int fd() noexcept override { return epoll_.get(); }

 private:
  struct Waiting;
  struct Bucket {
    KernelLock lock;  // Held across epoll_ctl, and while a waiter is woken.
    Waiting* first STERNA_GUARDED_BY(lock) = nullptr;
  };
  static constexpr std::size_t kBuckets = 64;

  explicit Readiness(Progress& progress, FileDescriptor epoll) noexcept
      : progress_{progress}, epoll_{std::move(epoll)} {}

  [[nodiscard]] Bucket& bucket_of(int descriptor) noexcept {
    return buckets_[static_cast<unsigned>(descriptor) % kBuckets];
  }
  /// One look at the set, which puts to rest what it reports.
  std::uint32_t look() noexcept;
  long arm(const Bucket& bucket, int descriptor) noexcept STERNA_REQUIRES(bucket.lock);
  bool leave(Waiting& waiting) noexcept;
  std::uint32_t fire(int descriptor, std::uint32_t events) noexcept;

  Progress& progress_;
  const FileDescriptor epoll_;
  std::array<Bucket, kBuckets> buckets_;
  // How many wait. Relaxed: without it every poll would cost a system call; who joins counts
  // itself before it arms, and a sleeper sleeps on the epoll set itself.
  std::atomic<std::uint32_t> count_{0};
  // Somebody has waited here. Relaxed: a sleeper who did not see it is woken by what was armed, and
  // sees it at the next sleep.
  std::atomic<bool> was_used_{false};
  // Of the last look of poll(). Guard: the poller's turn.
  std::uint64_t last_look_ns_ = 0;
};

}  // namespace sterna::progress
