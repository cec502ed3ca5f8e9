// Which turns of announced messages (from the announcement to its answer), copies and reads of a
// way teach its cost model: few, so that to look at the clock costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna::net {

/// One of so many, and so many at first. Any thread: two that ask at once may count as one.
class OneOf {
 public:
  explicit constexpr OneOf(std::uint32_t every, std::uint32_t at_first = 0) noexcept
      : every_{every}, at_first_{at_first} {}
  [[nodiscard]] bool is_next() noexcept {
    // Relaxed: a count that need not be exact.
    const std::uint32_t count = count_.load(std::memory_order_relaxed) + 1;
    count_.store(count, std::memory_order_relaxed);
    return count % every_ == 0 || count <= at_first_;
  }

 private:
  const std::uint32_t every_;
  const std::uint32_t at_first_;
  std::atomic<std::uint32_t> count_{0};
};

/// Which of the things that one way does are measured. Any thread.
class Lessons {
 public:
  /// A message that might have a head goes without, so that its turn says what a turn takes.
  [[nodiscard]] bool is_turn_next() noexcept { return turns_.is_next(); }
  /// A message that had come before its receive is copied once more.
  [[nodiscard]] bool is_copy_next() noexcept { return copies_.is_next(); }
  /// An announced message is read in one go. Of long ones the clock and the model are no part.
  [[nodiscard]] bool is_read_next(std::uint64_t bytes) noexcept {
    return bytes > kShortReadBytes || reads_.is_next();
  }

  /// What a call asks with is sent, though it had better be read.
  [[nodiscard]] bool is_call_next() noexcept { return calls_.is_next(); }

 private:
  static constexpr std::uint64_t kShortReadBytes = 128 << 10;

  OneOf turns_{32};
  OneOf copies_{16};
  OneOf reads_{4, 64};
  OneOf calls_{64, 4};
};

/// The announcement of a way whose answer is awaited: the first of those that are under way, since
/// the others lie behind it in the network, or in front of each other's bytes. Not thread-safe: who
/// holds the cost model asks.
class RoundTrip {
 public:
  /// `rank` is about to announce its send `id`, a head of so many bytes behind it.
  void begin(std::uint32_t rank, std::uint64_t id, std::uint32_t head_bytes,
             std::uint64_t now_ns) noexcept {
    if (!is_under_way_ || now_ns - began_ns_ >= kForgottenNs) {
      *this = {rank, id, head_bytes, now_ns};
    }
  }
  /// It was answered, or will not be a measure. False: another one is awaited, or none.
  [[nodiscard]] bool end(std::uint32_t rank, std::uint64_t id) noexcept {
    const bool is_this = is_under_way_ && rank_ == rank && id_ == id;
    is_under_way_ = is_under_way_ && !is_this;
    return is_this;
  }
  [[nodiscard]] std::uint64_t began_ns() const noexcept { return began_ns_; }
  [[nodiscard]] std::uint32_t head_bytes() const noexcept { return head_bytes_; }

  RoundTrip() noexcept = default;

 private:
  // Its receive comes late, or it was cancelled: others shall not wait for that.
  static constexpr std::uint64_t kForgottenNs = 10'000'000;

  RoundTrip(std::uint32_t rank, std::uint64_t id, std::uint32_t head_bytes,
            std::uint64_t now_ns) noexcept
      : id_{id}, began_ns_{now_ns}, rank_{rank}, head_bytes_{head_bytes}, is_under_way_{true} {}

  std::uint64_t id_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint32_t rank_ = 0;
  std::uint32_t head_bytes_ = 0;
  bool is_under_way_ = false;
};

}  // namespace sterna::net
