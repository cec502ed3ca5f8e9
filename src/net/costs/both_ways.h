// Whether long messages come and go at the same time, as where two exchange them. Packets are
// filled by one processor and read by another: while they go one way the two work side by side, and
// a byte takes as long as the slower one. Where both have to fill and to read it takes both times.
// A copy by the receiver alone takes as long either way.
//
// Of a way; all relaxed: hints. Two that learn at once may count as one.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace sterna::net {

class BothWays {
 public:
  static constexpr std::uint64_t kBytesMin = 16 << 10;  // Of messages that count.

  /// A long message begins to be received; its receiver has sent some that have not arrived yet, or
  /// none. True: the share has changed so much that it should be asked for.
  bool receives(bool has_sent) noexcept {
    sent_since_.store(0, std::memory_order_relaxed);
    received_since_.store(received_since_.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    return learn(has_sent ? kWhole : 0);
  }
  /// One is sent. Of who only sends nothing else is heard.
  bool sends() noexcept {
    const std::uint32_t sent = sent_since_.load(std::memory_order_relaxed) + 1;
    sent_since_.store(sent, std::memory_order_relaxed);
    received_since_.store(0, std::memory_order_relaxed);
    return sent > kAlone && learn(0);
  }
  /// Messages come, and none go.
  [[nodiscard]] bool only_receives() const noexcept {
    return received_since_.load(std::memory_order_relaxed) > kAlone;
  }
  /// Of the messages that come, as it was when that was last said to have changed: 0 to 1.
  [[nodiscard]] double share() const noexcept {
    return static_cast<double>(told_.load(std::memory_order_relaxed)) / kWhole;
  }

 private:
  static constexpr std::int32_t kWhole = 1024;
  static constexpr std::int32_t kWeight = 8;      // The last eight count.
  static constexpr std::int32_t kStep = kWhole / 4;
  static constexpr std::uint32_t kAlone = 4;  // More in a row are no exchange.

  bool learn(std::int32_t sample) noexcept {
    const std::int32_t share = share_.load(std::memory_order_relaxed);
    const std::int32_t step = (sample - share) / kWeight;
    // The division would keep it from both ends.
    const std::int32_t now = step != 0 ? share + step : sample;
    share_.store(now, std::memory_order_relaxed);
    const std::int32_t told = told_.load(std::memory_order_relaxed);
    if (now == told || (std::abs(now - told) < kStep && now != 0 && now != kWhole)) {
      return false;
    }
    told_.store(now, std::memory_order_relaxed);
    return true;
  }

  std::atomic<std::int32_t> share_{0};
  std::atomic<std::int32_t> told_{0};
  std::atomic<std::uint32_t> sent_since_{0};
  std::atomic<std::uint32_t> received_since_{0};
};

}  // namespace sterna::net
