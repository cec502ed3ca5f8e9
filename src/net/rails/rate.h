// How fast a rail delivers and how long it takes, learnt from what comes back: the bytes known to
// have come per time, of which the most of the last half second counts (less says only that there
// was less to send), and the shortest time from a sending to the news of it. (After: Cardwell et
// al., BBR, ACM Queue 2016, which found that these two measure a path.) News may be late: of what
// came before, so that what came since seems to have come at once. Nothing comes faster than it was
// sent, which is why that time counts where it is the longer.
//
// A rail that looks bad gets no packets, and so nothing would ever show that it is better again:
// one whose figures were once several times as good, and which is idle, is to be tried with a
// packet, as if they were. After a time that is long for what the packet takes if they are not.
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
    std::uint64_t delivered_sent_ns = 0;  // When that had been sent; the same: the rail was idle.
  };

  /// Begins with a profile. Less than two packets of `packet_bytes` between a sending and its news
  /// say only that there was no more to send.
  void begin(std::uint64_t ps_per_byte, std::uint64_t latency_ns,
             std::uint64_t packet_bytes) noexcept {
    least_bytes_ = 2 * packet_bytes;
    profile_ps_per_byte_ = std::max<std::uint64_t>(ps_per_byte, 1);
    round_trip_ns_ = expected_round_trip_ns_ = 2 * latency_ns;
  }

  /// Sampled figures in the place of the profile: they count until packets have been measured.
  void know(std::uint64_t ps_per_byte, std::uint64_t packet_ns, std::uint64_t latency_ns) noexcept {
    profile_ps_per_byte_ = std::max<std::uint64_t>(ps_per_byte, 1);
    packet_ns_ = packet_ns;
    expected_round_trip_ns_ = 2 * latency_ns;
    // A measure as others are: of a rail whose first packets were held up by something else.
    if (!has_round_trip_ || expected_round_trip_ns_ < round_trip_ns_) {
      round_trip_ns_ = expected_round_trip_ns_;
      round_trip_bytes_ns_ = 0;
    }
    least_round_trip_ns_ = std::min(least_round_trip_ns_, expected_round_trip_ns_);
    is_known_ = true;
  }

  Stamp sent(std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    if (in_flight_ == 0) {
      delivered_ns_ = delivered_sent_ns_ = now_ns;
    }
    in_flight_ += bytes;
    through_ns_ = std::max(through_ns_, now_ns) + bytes * ps_per_byte() / 1000;
    return {delivered_, delivered_ns_, delivered_sent_ns_};
  }

  /// A packet of `bytes` bytes has come that was sent at `sent_ns`, once only (else there is no
  /// measure). The news was held up for `late_ns`, as far as is known.
  void acked(const Stamp& stamp, std::uint64_t bytes, std::uint64_t sent_ns, std::uint64_t now_ns,
             std::uint64_t late_ns = 0) noexcept {
    forget(bytes);
    through_ns_ = std::min(through_ns_, now_ns + in_flight_ * ps_per_byte() / 1000);
    delivered_ += bytes;
    delivered_ns_ = std::max(delivered_ns_, now_ns - std::min(now_ns, late_ns));
    delivered_sent_ns_ = sent_ns;
    if (delivered_ns_ <= stamp.delivered_ns || delivered_ - stamp.delivered < least_bytes_) {
      return;
    }
    const std::uint64_t sending_ns = sent_ns - std::min(sent_ns, stamp.delivered_sent_ns);
    const std::uint64_t took_ns = std::max(delivered_ns_ - stamp.delivered_ns, sending_ns);
    // Behind an idle rail's first packet its way there and back is in that time.
    const bool was_idle = stamp.delivered_ns == stamp.delivered_sent_ns;
    const std::uint64_t way_ns = std::min(expected_round_trip_ns_, round_trip_ns_);
    const std::uint64_t passing_ns = took_ns - (was_idle ? std::min(way_ns, took_ns / 2) : 0);
    measured((delivered_ - stamp.delivered) * 1'000'000 / passing_ns, now_ns);
    judge(now_ns);
  }
  /// It was lost, or is sent by another rail: no measure.
  void forget(std::uint64_t bytes) noexcept { in_flight_ -= std::min(bytes, in_flight_); }

  /// A packet of `bytes` bytes; the bytes of what brought the news took `news_ns` of it.
  void took(std::uint64_t round_trip_ns, std::uint64_t bytes, std::uint64_t now_ns,
            std::uint64_t news_ns = 0) noexcept {
    round_trip_ns = std::max<std::uint64_t>(round_trip_ns, 1);
    if (is_known_ && !has_round_trip_) {
      has_round_trip_ = true;
      round_trip_until_ns_ = now_ns + kRoundTripNs;
    }
    if (!has_round_trip_ || round_trip_ns <= round_trip_ns_ || now_ns >= round_trip_until_ns_) {
      round_trip_ns_ = round_trip_ns;
      round_trip_bytes_ns_ = bytes * ps_per_byte() / 1000 + news_ns;
      round_trip_until_ns_ = now_ns + kRoundTripNs;
      has_round_trip_ = true;
    }
    least_round_trip_ns_ = std::min(least_round_trip_ns_, round_trip_ns);
    ++round_trips_;
    // All of it has passed in that time.
    const std::uint64_t per_ms = bytes * 1'000'000 / round_trip_ns;
    if (best_ != 0 && per_ms > best_) {
      measured(per_ms, now_ns);
    }
    judge(now_ns);
  }

  [[nodiscard]] std::uint64_t in_flight() const noexcept { return in_flight_; }
  /// What was sent has passed by its rate, though the news of it may still come.
  [[nodiscard]] bool is_through(std::uint64_t now_ns) const noexcept {
    return in_flight_ == 0 || now_ns >= through_ns_;
  }
  [[nodiscard]] std::uint64_t round_trip_ns() const noexcept { return round_trip_ns_; }
  /// Of a packet without bytes, one way: where nothing short is sent, the shortest round trip is
  /// mostly bytes.
  [[nodiscard]] std::uint64_t latency_ns() const noexcept {
    const std::uint64_t bytes_ns = std::min(round_trip_ns_, round_trip_bytes_ns_);
    return std::max(round_trip_ns_ - bytes_ns, round_trip_ns_ / kMostBytes) / 2;
  }
  [[nodiscard]] bool is_measured() const noexcept { return best_ != 0; }
  /// Its figures were once several times as good.
  [[nodiscard]] bool is_poor() const noexcept { return is_poor_; }
  /// Of a poor one: whether the next packet is chosen for by what they were.
  [[nodiscard]] bool is_to_try(std::uint64_t now_ns) const noexcept {
    return in_flight_ == 0 && now_ns >= try_ns_;
  }
  [[nodiscard]] std::uint64_t least_round_trip_ns() const noexcept {
    // Few long ones may all have been stuck: then what was expected counts, too.
    const bool is_doubtful = round_trips_ < kSure && round_trip_ns_ >= kDoubtfulNs;
    return std::min({least_round_trip_ns_, round_trip_ns_,
                     is_doubtful ? expected_round_trip_ns_ : round_trip_ns_});
  }
  [[nodiscard]] std::uint64_t least_ps_per_byte() const noexcept {
    return best_ever_ != 0 ? std::max<std::uint64_t>(1'000'000'000 / best_ever_, 1) : ps_per_byte();
  }
  /// Of packets of so many bytes: each also costs what a small one does.
  [[nodiscard]] std::uint64_t profile_ps_per_byte(std::uint64_t packet_bytes) const noexcept {
    return profile_ps_per_byte_ + packet_ns_ * 1000 / std::max<std::uint64_t>(packet_bytes, 1);
  }
  /// What was sampled is more exact than what messages show: that counts where it is another rate.
  [[nodiscard]] std::uint64_t ps_per_byte() const noexcept {
    const std::uint64_t shown =
        best_ != 0 ? std::max<std::uint64_t>(1'000'000'000 / best_, 1) : profile_ps_per_byte_;
    const std::uint64_t sampled = profile_ps_per_byte_;
    const bool is_same = shown >= sampled - sampled / 8 * kFasterEighths &&
                         shown <= sampled + sampled / 8 * kSlowerEighths;
    return is_known_ && is_same ? sampled : shown;
  }

 private:
  /// So many bytes a millisecond.
  void measured(std::uint64_t per_ms, std::uint64_t now_ns) noexcept {
    if (now_ns >= bucket_end_ns_) {
      previous_ = now_ns < bucket_end_ns_ + kBucketNs ? current_ : 0;
      current_ = 0;
      bucket_end_ns_ = now_ns + kBucketNs;
    }
    current_ = std::max(current_, per_ms);
    best_ = std::max(current_, previous_);
    best_ever_ = std::max(best_ever_, best_);
  }
  void judge(std::uint64_t now_ns) noexcept {
    is_poor_ = round_trip_ns_ / kPoor > least_round_trip_ns() || best_ < best_ever_ / kPoor;
    if (is_poor_) {
      const std::uint64_t packet_ns = round_trip_ns_ + least_bytes_ / 2 * ps_per_byte() / 1000;
      try_ns_ = now_ns + std::clamp(kTryFactor * packet_ns, kTryNsMin, kTryNsMax);
    }
  }

  static constexpr std::uint64_t kPoor = 4;
  // By less it is no other rate than the sampled one. News of many packets at once make a rail look
  // faster than it is.
  static constexpr std::uint64_t kSlowerEighths = 2;
  static constexpr std::uint64_t kFasterEighths = 3;
  static constexpr std::uint64_t kMostBytes = 16;  // Rates are not known so well that less is left.
  static constexpr std::uint32_t kSure = 8;
  static constexpr std::uint64_t kDoubtfulNs = 50'000'000;
  static constexpr std::uint64_t kTryNsMin = 100'000'000;
  static constexpr std::uint64_t kTryNsMax = 2'000'000'000;  // By then it has mostly been mended.
  static constexpr std::uint64_t kTryFactor = 8;
  static constexpr std::uint64_t kBucketNs = 250'000'000;
  static constexpr std::uint64_t kRoundTripNs = 5'000'000'000;  // A shorter one counts so long.

  std::uint64_t profile_ps_per_byte_ = 1;
  std::uint64_t packet_ns_ = 0;  // As it, sampled.
  std::uint64_t least_bytes_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t through_ns_ = 0;  // When what was sent has passed, by its rate.
  std::uint64_t delivered_ = 0;
  std::uint64_t delivered_ns_ = 0;
  std::uint64_t delivered_sent_ns_ = 0;
  std::uint64_t bucket_end_ns_ = 0;
  std::uint64_t current_ = 0;   // Bytes per millisecond, the most of this bucket,
  std::uint64_t previous_ = 0;  // and of the one before.
  std::uint64_t best_ = 0;
  std::uint64_t best_ever_ = 0;
  std::uint64_t round_trip_ns_ = 0;
  std::uint64_t round_trip_bytes_ns_ = 0;  // Of it, what bytes have taken, as far as is known.
  std::uint64_t expected_round_trip_ns_ = 0;               // Before any was measured.
  std::uint64_t least_round_trip_ns_ = ~std::uint64_t{0};  // Ever measured.
  std::uint32_t round_trips_ = 0;
  std::uint64_t round_trip_until_ns_ = 0;
  std::uint64_t try_ns_ = 0;
  bool has_round_trip_ = false;
  bool is_known_ = false;  // know() was called.
  bool is_poor_ = false;
};

}  // namespace sterna::net
