// Flow control of calls without reply: how much a node may have posted to another that has not
// begun there. Nobody answers them, so a sender would run ahead without bound: what its receiver
// does not take fills its memory, what that takes becomes threads that have not begun.
//
// A post costs units that both sides compute from its message. The sender counts what it posts
// (PostWindow), the receiver what has begun (BegunPosts), and tells the running total now and then.
// Who may wait does so while more than kPostWindow of what was posted before has not begun.
//
// Why nodes that flood each other never wait for each other for ever: a post counts as begun before
// its service can wait for anything, so no service that waits to post keeps back what another one
// waits for. Long pieces that its service does not take itself have come by then: who brings them
// are two pollers, who wait for no service. Quick services and the runtime's own posts never wait,
// so the poll, where acknowledgements arrive and threads are made, never does. A thread that waits
// leaves its worker to others, so every thread that was made begins. Posts take their places in one
// order: all before the first that waits are on their way or done, they all begin, and what a
// receiver has not told of them (less than kPostStep + kPostPending) is less than the window: the
// first that waits goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "progress/completion.h"
#include "rpc/message.h"

namespace sterna::progress {
class Progress;
}

namespace sterna::rpc {

inline constexpr std::uint64_t kPostWindow = 1 << 20;  // Units: bytes and kPostUnits each.
inline constexpr std::uint64_t kPostUnits = 512;               // Of a post, beside its bytes.
inline constexpr std::uint64_t kPostStep = kPostWindow / 4;    // A receiver tells so often.
inline constexpr std::uint64_t kPostPending = kPostStep / 16;  // Quick posts: counted together.

/// Long pieces count for more: as many as fit the window go at once, as messages for which nobody
/// waits yet, of which a window (net_eager_window, 2 MiB) takes five quarters, and which may be
/// told of late.
[[nodiscard]] constexpr std::uint64_t units_of_post(std::uint64_t body_bytes,
                                                    std::uint64_t part_bytes = 0) noexcept {
  return body_bytes + part_bytes * 5 / 2 + kPostUnits;
}

/// What was posted to one node, by its sender. Any thread.
class PostWindow {
 public:
  /// Counts a post that is about to be sent, which may wait for its turn before. Its place: how
  /// much was posted before.
  [[nodiscard]] std::uint64_t take(std::uint64_t units) noexcept {
    return posted_.fetch_add(units, std::memory_order_relaxed);
  }
  /// A post of that place need not wait. One larger than the window is as any other.
  [[nodiscard]] bool is_open(std::uint64_t place) const noexcept {
    return place <= begun_.load(std::memory_order_relaxed) + kPostWindow;
  }
  /// Waits until it is. False: the node is lost. Switches.
  [[nodiscard]] bool wait(std::uint64_t place, progress::Progress& progress) noexcept;
  /// What was counted has not been sent, and will not be.
  void give_back(std::uint64_t units) noexcept;

  /// The receiver says that so much has begun, of which it sends the lowest kIdBits. Totals may
  /// come in any order. False: it cannot mean that, nothing has changed.
  [[nodiscard]] bool acknowledge(std::uint64_t total) noexcept;
  /// From now on nobody waits.
  void lose() noexcept;
  /// Units that were ever taken.
  [[nodiscard]] std::uint64_t posted() const noexcept {
    return posted_.load(std::memory_order_relaxed);
  }
  /// Units that were posted, or wait for that, and have not begun as far as is known.
  [[nodiscard]] std::uint64_t outstanding() const noexcept {
    const std::uint64_t begun = begun_.load(std::memory_order_relaxed);  // Before: never more.
    return posted_.load(std::memory_order_relaxed) - begun;
  }

 private:
  /// On the stack of who waits.
  struct Waiting {
    std::uint64_t place;
    Waiting* next = nullptr;
    bool is_lost = false;  // Valid when done.
    progress::Completion done = {};
  };

  [[nodiscard]] Waiting* open(std::uint64_t units) noexcept STERNA_REQUIRES(lock_);
  static void wake(Waiting* first) noexcept;

  // Both relaxed: they guard nothing. What waits looks at begun_ again under the lock.
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> begun_{0};  // Changed under the lock; what was given back as well.
  SpinLock lock_;
  std::uint64_t told_ STERNA_GUARDED_BY(lock_) = 0;  // By the receiver, the largest.
  bool is_lost_ STERNA_GUARDED_BY(lock_) = false;
  Waiting* first_ STERNA_GUARDED_BY(lock_) = nullptr;  // By their places.
  Waiting* last_ STERNA_GUARDED_BY(lock_) = nullptr;   // Of no meaning where there is no first.
};

/// What has begun of what one node has posted here.
class BegunPosts {
 public:
  /// One more has begun, or never will. Not 0: the total, of which the sender is to be told now.
  /// Any thread.
  [[nodiscard]] std::uint64_t add(std::uint64_t units) noexcept {
    // Relaxed: a number that guards nothing. Each multiple of the step is passed by one caller.
    const std::uint64_t before = total_.fetch_add(units, std::memory_order_relaxed);
    const std::uint64_t total = before + units;
    return before / kPostStep == total / kPostStep ? 0 : total;
  }
  /// The same, by the poller.
  [[nodiscard]] std::uint64_t add_in_poll(std::uint64_t units) noexcept {
    pending_ += units;
    return pending_ < kPostPending ? 0 : add(std::exchange(pending_, 0));
  }

 private:
  std::atomic<std::uint64_t> total_{0};
  std::uint64_t pending_ = 0;  // The poller's: not yet in the total.
};

/// Of one node, both ways. Senders do not share a line with those of other nodes.
struct alignas(64) PostPeer {
  PostWindow to;
  BegunPosts from;
};

}  // namespace sterna::rpc
