// How fast a rail delivers and how long it takes, learnt from what comes back: the bytes known to
// have come per time, of which the most of the last half second counts (less says only that there
// was less to send), and the shortest time from a sending to the news of it. (After: Cardwell et
// al., BBR, ACM Queue 2016, which found that these two measure a path.)
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::net {

class RailRate {
 public:
  /// What was known when a packet left.
  struct Stamp {
    std::uint64_t delivered = 0;
    std::uint64_t delivered_ns = 0;
  };

  /// Begins with a profile. Less than two packets of `packet_bytes` between a sending and its news
  /// say only that there was no more to send.
  void begin(std::uint64_t ps_per_byte, std::uint64_t latency_ns,
             std::uint64_t packet_bytes) noexcept {
    least_bytes_ = 2 * packet_bytes;
    profile_ps_per_byte_ = std::max<std::uint64_t>(ps_per_byte, 1);
    round_trip_ns_ = 2 * latency_ns;
  }

  /// Sampled figures in the place of the profile: they count until packets have been measured.
  void know(std::uint64_t ps_per_byte, std::uint64_t packet_ns, std::uint64_t latency_ns) noexcept {
    profile_ps_per_byte_ = std::max<std::uint64_t>(ps_per_byte, 1);
    packet_ns_ = packet_ns;
    round_trip_ns_ = has_round_trip_ ? round_trip_ns_ : 2 * latency_ns;
  }

  Stamp sent(std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    if (in_flight_ == 0) {
      delivered_ns_ = now_ns;
    }
    in_flight_ += bytes;
    return {delivered_, delivered_ns_};
  }

  /// A packet of `bytes` bytes has come; a measure if it was sent once only.
  void acked(const Stamp& stamp, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    forget(bytes);
    delivered_ += bytes;
    delivered_ns_ = now_ns;
    if (now_ns <= stamp.delivered_ns || delivered_ - stamp.delivered < least_bytes_) {
      return;
    }
    const std::uint64_t per_ms =
        (delivered_ - stamp.delivered) * 1'000'000 / (now_ns - stamp.delivered_ns);
    if (now_ns >= bucket_end_ns_) {
      previous_ = now_ns < bucket_end_ns_ + kBucketNs ? current_ : 0;
      current_ = 0;
      bucket_end_ns_ = now_ns + kBucketNs;
    }
    current_ = std::max(current_, per_ms);
    best_ = std::max(current_, previous_);
  }
  /// It was lost, or is sent by another rail: no measure.
  void forget(std::uint64_t bytes) noexcept { in_flight_ -= std::min(bytes, in_flight_); }

  void took(std::uint64_t round_trip_ns, std::uint64_t now_ns) noexcept {
    if (!has_round_trip_ || round_trip_ns <= round_trip_ns_ || now_ns >= round_trip_until_ns_) {
      round_trip_ns_ = std::max<std::uint64_t>(round_trip_ns, 1);
      round_trip_until_ns_ = now_ns + kRoundTripNs;
      has_round_trip_ = true;
    }
  }

  [[nodiscard]] std::uint64_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::uint64_t round_trip_ns() const noexcept { return round_trip_ns_; }
  [[nodiscard]] bool is_measured() const noexcept { return best_ != 0; }
  /// Of packets of so many bytes: each also costs what a small one does.
  [[nodiscard]] std::uint64_t profile_ps_per_byte(std::uint64_t packet_bytes) const noexcept {
    return profile_ps_per_byte_ + packet_ns_ * 1000 / std::max<std::uint64_t>(packet_bytes, 1);
  }
  [[nodiscard]] std::uint64_t ps_per_byte() const noexcept {
    return best_ != 0 ? std::max<std::uint64_t>(1'000'000'000 / best_, 1) : profile_ps_per_byte_;
  }

 private:
  static constexpr std::uint64_t kBucketNs = 250'000'000;
  static constexpr std::uint64_t kRoundTripNs = 5'000'000'000;  // A shorter one counts so long.

  std::uint64_t profile_ps_per_byte_ = 1;
  std::uint64_t packet_ns_ = 0;  // As it, sampled.
  std::uint64_t least_bytes_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t delivered_ns_ = 0;
  std::uint64_t bucket_end_ns_ = 0;
  std::uint64_t current_ = 0;   // Bytes per millisecond, the most of this bucket,
  std::uint64_t previous_ = 0;  // and of the one before.
  std::uint64_t best_ = 0;
  std::uint64_t round_trip_ns_ = 0;
  std::uint64_t round_trip_until_ns_ = 0;
  bool has_round_trip_ = false;
};

}  // namespace sterna::net
