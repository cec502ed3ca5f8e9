// The two ends of one direction of a link: which packets are on their way, and which have come.
// Numbers are modulo 2^32. No threads here: the link guards them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/check.h"
#include "net/packets/packet_pool.h"
#include "net/rails/format.h"
#include "net/rails/rate.h"

namespace sterna::net {

/// A data packet that was sent and is not known to have come.
struct Sent {
  HeldPacket* packet = nullptr;  // Null: it has come.
  std::uint64_t sent_ns = 0;     // The last time.
  std::uint64_t order = 0;       // Of that sending, among those by the same rail.
  RailRate::Stamp stamp;
  std::uint16_t rail = 0;
  std::uint16_t tries = 0;
  bool is_busy = false;  // A driver is reading its bytes.
  bool must_go = false;  // To be sent again.
};

class SendWindow {
 public:
  explicit SendWindow(std::uint32_t first = 0) noexcept : first_{first}, next_{first} {}

  [[nodiscard]] bool is_full() const noexcept { return next_ - first_ >= kLinkWindow; }
  [[nodiscard]] bool is_empty() const noexcept { return next_ == first_; }
  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return next_ - first_; }
  [[nodiscard]] bool holds(std::uint32_t sequence) const noexcept {
    return sequence - first_ < next_ - first_;
  }
  /// `sequence` is held.
  [[nodiscard]] Sent& operator[](std::uint32_t sequence) noexcept {
    return sent_[sequence % kLinkWindow];
  }

  Sent& push() noexcept {
    Sent& sent = sent_[next_++ % kLinkWindow];
    sent = {};
    return sent;
  }
  /// Takes back the last push, which is still held.
  void take_back() noexcept {
    check(!is_empty(), "what is taken back was pushed and has not left");
    --next_;
  }

  /// What has come leaves at the front.
  void trim() noexcept {
    while (first_ != next_ && sent_[first_ % kLinkWindow].packet == nullptr) {
      ++first_;
    }
  }

 private:
  std::uint32_t first_;
  std::uint32_t next_;
  std::array<Sent, kLinkWindow> sent_{};
};

class ReceiveWindow {
 public:
  enum class Arrival : std::uint8_t {
    fresh,
    twice,
    far,  // Beyond the window: no sender of ours does that.
  };
  explicit ReceiveWindow(std::uint32_t expected = 0) noexcept : expected_{expected} {}

  [[nodiscard]] std::uint32_t expected() const noexcept { return expected_; }
  [[nodiscard]] bool has_holes() const noexcept { return beyond_ != 0; }

  Arrival take(std::uint32_t sequence) noexcept {
    const std::uint32_t ahead = sequence - expected_;
    if (ahead >= kLinkWindow) {
      return is_after(expected_, sequence) ? Arrival::twice : Arrival::far;
    }
    if (ahead != 0) {
      if (arrived_[sequence % kLinkWindow]) {
        return Arrival::twice;
      }
      arrived_[sequence % kLinkWindow] = true;
      ++beyond_;
      return Arrival::fresh;
    }
    ++expected_;
    while (beyond_ != 0 && arrived_[expected_ % kLinkWindow]) {
      arrived_[expected_++ % kLinkWindow] = false;
      --beyond_;
    }
    return Arrival::fresh;
  }

  /// The map of an ack: see LinkPacket::arrived. Returns how many words say something.
  [[nodiscard]] std::uint32_t map(std::array<std::uint64_t, kArrivedWords>& words) const noexcept {
    words.fill(0);
    std::uint32_t left = beyond_;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; left != 0 && i + 1 < kLinkWindow; ++i) {
      if (arrived_[(expected_ + 1 + i) % kLinkWindow]) {
        words[i / 64] |= std::uint64_t{1} << (i % 64);
        count = i / 64 + 1;
        --left;
      }
    }
    return count;
  }

 private:
  std::uint32_t expected_;
  std::uint32_t beyond_ = 0;            // Bits set below.
  std::bitset<kLinkWindow> arrived_{};  // Of the packets after expected_.
};

}  // namespace sterna::net
