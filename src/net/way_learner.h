// What packets on a way cost, learnt from how fast they leave while others wait for them: the time
// between two packets that found room is what those before them took. A packet of `bytes` bytes
// takes packet_ns + bytes * ps_per_byte / 1000: both by least squares over the last some hundred
// packets, of which the newer count more. Not thread-safe: who owns the gate calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/packets/strategy.h"

namespace sterna::net {

class WayLearner {
 public:
  /// Figures of the way; 0: nothing is known yet.
  [[nodiscard]] std::uint64_t packet_ns() const noexcept { return packet_ns_; }
  [[nodiscard]] std::uint64_t ps_per_byte() const noexcept { return ps_per_byte_; }

  /// What a byte of a long packet takes, as ps_per_byte(), each kNewsEvery observations, where that
  /// can be told from what each packet takes; else 0.
  [[nodiscard]] std::uint64_t take_news() noexcept {
    const bool is_told_apart = is_clear_ && packet_ > 0 && byte_ > kByteMin;
    const bool are_long = bytes_bytes_ >= kLongBytes * packets_bytes_;
    if (observed_ < kNewsEvery || !is_told_apart || !are_long) {
      return 0;
    }
    observed_ = 0;
    return ps_per_byte_;
  }

  /// What kind of packet would teach something now. Packets that are all alike say what they take
  /// together, not what of it is each packet's and what each byte's.
  [[nodiscard]] Trial next_trial() const noexcept {
    if (is_clear_ || packet_count_ < trial_at_) {
      return Trial::none;
    }
    return frames_ < 1.5 ? Trial::shared : Trial::alone;
  }

  /// So many packets, frames and bytes have left, just now; `is_waiting`: others find no room.
  void left(std::uint32_t packets, std::uint32_t frames, std::uint64_t bytes, bool is_waiting,
            std::uint64_t now_ns) noexcept {
    if (packets != 0) {
      if (was_waiting_ && before_packets_ != 0) {
        observe(before_packets_, static_cast<double>(before_bytes_),
                static_cast<double>(now_ns - std::min(now_ns, at_ns_)));
      }
      packet_count_ += packets;
      if (packet_count_ > trial_at_) {
        trial_at_ = packet_count_ + (ps_per_byte_ == 0 ? kTrialsAtFirst : kTrialsLater);
      }
      frames_ += (static_cast<double>(frames) / packets - frames_) * kNewWeight;
      before_packets_ = packets;
      before_bytes_ = bytes;
      at_ns_ = now_ns;
    } else if (!was_waiting_ && is_waiting) {
      before_packets_ = 0;  // What is on its way is not known.
      at_ns_ = now_ns;
    }
    was_waiting_ = is_waiting;
  }

 private:
  static constexpr double kNewWeight = 1.0 / 64;
  static constexpr std::uint32_t kTrialsAtFirst = 4;  // One packet of so many.
  static constexpr std::uint32_t kTrialsLater = 64;
  // Of the determinant: below, packets are so much alike that chance decides.
  static constexpr double kClear = 0.02;

  void observe(double packets, double bytes, double ns) noexcept {
    ++observed_;
    if (ps_per_byte_ != 0) {  // One preempted packet must not look like a slow network.
      const double expected = packets * packet_ + bytes * byte_;
      ns = std::min(ns, 4 * expected);
    }
    const auto add = [](double& sum, double value) { sum += value - sum * kNewWeight; };
    add(packets_packets_, packets * packets);
    add(packets_bytes_, packets * bytes);
    add(bytes_bytes_, bytes * bytes);
    add(packets_ns_, packets * ns);
    add(bytes_ns_, bytes * ns);
    const double determinant = packets_packets_ * bytes_bytes_ - packets_bytes_ * packets_bytes_;
    is_clear_ = determinant > kClear * packets_packets_ * bytes_bytes_;
    if (!is_clear_) {
      return;
    }
    packet_ = (packets_ns_ * bytes_bytes_ - bytes_ns_ * packets_bytes_) / determinant;
    byte_ = (bytes_ns_ * packets_packets_ - packets_ns_ * packets_bytes_) / determinant;
    if (packet_ < 0) {
      packet_ = 0;
      byte_ = bytes_ns_ / bytes_bytes_;
    } else if (byte_ < kByteMin) {
      byte_ = kByteMin;
      packet_ = packets_ns_ / packets_packets_;
    }
    packet_ns_ = static_cast<std::uint64_t>(packet_);
    ps_per_byte_ = static_cast<std::uint64_t>(byte_ * 1000);
  }
  static constexpr double kByteMin = 0.001;
  static constexpr std::uint32_t kNewsEvery = 32;
  // In the mean: what a byte takes is little of what shorter packets do, and lost in their noise.
  static constexpr double kLongBytes = 4 << 10;

  // Weighted sums of products, each over what was observed.
  double packets_packets_ = 0;
  double packets_bytes_ = 0;
  double bytes_bytes_ = 0;
  double packets_ns_ = 0;
  double bytes_ns_ = 0;
  double packet_ = 0;  // Nanoseconds,
  double byte_ = 0;    // a byte.
  double frames_ = 1;  // A packet, lately.
  std::uint64_t packet_ns_ = 0;
  std::uint64_t ps_per_byte_ = 0;
  std::uint64_t at_ns_ = 0;         // When the last packets left, or others began to wait.
  std::uint64_t before_bytes_ = 0;  // Of the last packets that left.
  std::uint32_t before_packets_ = 0;
  std::uint64_t packet_count_ = 0;
  std::uint32_t observed_ = 0;  // Since the last news.
  std::uint64_t trial_at_ = 0;
  bool was_waiting_ = false;
  bool is_clear_ = false;
};

}  // namespace sterna::net
