// What came of messages that were lent in parts over a link, where a part may come twice: its rail
// was lost behind it, nobody knows, and it is sent again in frames that say so (kFrameAgain). The
// receive counts bytes, so each counts once, whichever way it comes first, or last:
//
//   hold         a rail will write a part: not one of which frames have come
//   come_again   frames that say so; not what a rail has written
//   end          the rail has let go of the part: written, less what has come in frames; or not
//
// A part whose rail still writes while its frames come has the same bytes from both. But its sender
// has given up that rail, and may have no way to say so: so has who hears it from the frames, and
// the rail is to be given up here, too, since the receive cannot end before that has let go.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::net {

/// Of all receives of a node. Any thread; inside the lock of the rank.
class LentParts {
 public:
  /// Of which message. `receive`: RecvRequest::id.
  struct Of {
    std::uint32_t rank;
    std::uint64_t receive;
    friend bool operator==(const Of&, const Of&) = default;
  };
  /// Which rail, by index among the drivers, to which node.
  struct Way {
    std::uint16_t rail;
    std::uint32_t node;
    friend bool operator==(const Way&, const Way&) = default;
  };

  /// Before the rail is told where the part goes. False: it is not to be written.
  [[nodiscard]] bool hold(Of of, Way way, std::uint64_t offset, std::uint64_t bytes) {
    const SpinGuard guard{lock_};
    const bool has_room = parts_.size() < kPartsMax;
    if (!has_room || overlap_any(of, offset, offset + bytes)) {
      return false;
    }
    add({.of = of, .way = way, .begin = offset, .end = offset + bytes});
    return true;
  }

  /// How many of the bytes of a frame count.
  [[nodiscard]] std::uint64_t come_again(Of of, std::uint64_t offset, std::uint64_t bytes) {
    const SpinGuard guard{lock_};
    const std::uint64_t end = offset + bytes;
    std::uint64_t fresh = bytes;
    bool is_known = false;
    for (Part& part : parts_) {
      const std::uint64_t shared = part.of == of ? overlap(part, offset, end) : 0;
      is_known = is_known || shared != 0;
      if (part.is_there) {
        fresh -= std::min(fresh, shared);
      } else if (shared != 0) {
        part.came += shared;
        if (std::ranges::find(given_up_, part.way) == given_up_.end()) {
          given_up_.push_back(part.way);
        }
        has_given_up_.store(true, std::memory_order_release);
      }
    }
    if (!is_known && parts_.size() < kPartsMax) {  // The news that it was lent may still come.
      add({.of = of, .begin = offset, .end = end, .is_there = true});
    }
    twice_bytes_ += bytes - fresh;
    return fresh;
  }

  /// The rail has let go of the part. How many of its bytes count now.
  [[nodiscard]] std::uint64_t end(Of of, std::uint64_t offset, std::uint64_t bytes, bool is_whole) {
    const SpinGuard guard{lock_};
    const auto part = std::ranges::find_if(parts_, [&](const Part& one) {
      return one.of == of && one.begin == offset && one.end == offset + bytes && !one.is_there;
    });
    if (part == parts_.end()) {
      return is_whole ? bytes : 0;
    }
    if (is_whole) {
      part->is_there = true;
      const std::uint64_t came = std::min(bytes, part->came);
      twice_bytes_ += came;
      return bytes - came;
    }
    parts_.erase(part);
    count_.store(parts_.size(), std::memory_order_relaxed);
    return 0;
  }

  /// The receive is over.
  void forget(Of of) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) {  // The rank's lock orders what it had.
      return;
    }
    const SpinGuard guard{lock_};
    std::erase_if(parts_, [&](const Part& part) { return part.of == of; });
    count_.store(parts_.size(), std::memory_order_relaxed);
  }
  /// By the poller: the ways that are to be given up, each once.
  [[nodiscard]] bool has_given_up() const noexcept {
    return has_given_up_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::vector<Way> take_given_up() {
    const SpinGuard guard{lock_};
    has_given_up_.store(false, std::memory_order_relaxed);
    return std::exchange(given_up_, {});
  }
  /// Bytes that did not count, since they had come.
  [[nodiscard]] std::uint64_t twice_bytes() noexcept {
    const SpinGuard guard{lock_};
    return twice_bytes_;
  }

 private:
  // Peers that keep to the protocol have some tens under way.
  static constexpr std::size_t kPartsMax = 64 << 10;
  struct Part {
    Of of;
    Way way = {};
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t came = 0;  // In frames, while a rail may write it.
    bool is_there = false;   // Else a rail may write it.
  };

  static std::uint64_t overlap(const Part& part, std::uint64_t begin, std::uint64_t end) noexcept {
    const std::uint64_t from = std::max(part.begin, begin);
    const std::uint64_t to = std::min(part.end, end);
    return to > from ? to - from : 0;
  }
  [[nodiscard]] bool overlap_any(Of of, std::uint64_t begin, std::uint64_t end) const noexcept
      STERNA_REQUIRES(lock_) {
    return std::ranges::any_of(parts_, [&](const Part& part) {
      return part.of == of && overlap(part, begin, end) != 0;
    });
  }
  void add(const Part& part) STERNA_REQUIRES(lock_) {
    parts_.push_back(part);
    count_.store(parts_.size(), std::memory_order_relaxed);
  }

  SpinLock lock_;
  std::vector<Part> parts_ STERNA_GUARDED_BY(lock_);
  std::vector<Way> given_up_ STERNA_GUARDED_BY(lock_);
  std::atomic<bool> has_given_up_{false};  // It is not empty.
  std::uint64_t twice_bytes_ STERNA_GUARDED_BY(lock_) = 0;
  std::atomic<std::size_t> count_{0};  // parts_.size(), for who has nothing there.
};

}  // namespace sterna::net
