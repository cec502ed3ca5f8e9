// The cost model: a few sums. The sentences that explain them: explained.cc.
#include "net/costs/cost.h"

#include <algorithm>

namespace sterna::net {
namespace {

// Weight of a new measure in the moving mean: about the last sixteen count.
constexpr double kNewWeight = 1.0 / 16;
// The first ones after the profile, which is that of another machine, count for more: three that
// agree are believed, one alone is not.
constexpr double kFirstWeight = 1.0 / 8;
constexpr double kFasterWeight = 1.0 / 4;
constexpr std::uint32_t kFirstCount = 8;
constexpr std::uint64_t kMeasuredBytesMin = 4 << 10;  // Below, the clock is what one measures.
constexpr std::uint64_t kLongBytesMin = 64 << 10;     // From here the rate is what one measures.

// A turn takes longer than the network does where its answer lay behind others, or the peer was
// busy. So slow ones count only where that many in a row were slow, and then the least of them.
constexpr std::uint32_t kSlowTurns = 4;
// A head keeps its sender from the answer for as long as it takes to send: of a turn at most...
constexpr double kHeadPartMax = 0.25;
// Where even the least of them is far beyond what was taken over it is the peer that is slow, all
// the time: a head for that long would be absurd. A profile is that of another network, and may be
// further off than what was sampled here.
constexpr double kLatencyTimesMax = 8;
constexpr double kLatencyTimesMaxOfProfile = 64;

// Memory that was just received is copied from the cache; used until something is measured.
constexpr double kCopyPsPerByte = 80;

/// One preempted copy must not look like a slow network, nor a clock that stands still like a fast
/// one: less so where more is known than the profile.
void correct(CostModel::Figure& figure, double measured, double weight = kNewWeight) noexcept {
  const double old = figure.value;
  const double times = figure.origin == CostOrigin::profile ? 4 : 2;
  figure.value += (std::clamp(measured, old / times, old * times) - old) * weight;
  ++figure.corrections;
}

/// Of a way that is not the chosen one little is measured, by trials, so that it counts for more;
/// most if it was faster than was thought: nothing makes it so by chance.
void correct_other(CostModel::Figure& figure, double measured) noexcept {
  correct(figure, measured, measured < figure.value ? kFasterWeight : kFirstWeight);
}

/// Little more than the profile is known.
bool is_new(const CostModel::Figure& figure) noexcept {
  return figure.origin == CostOrigin::profile && figure.corrections < kFirstCount;
}

constexpr double ps_per_byte_at(std::uint32_t mb_per_s) noexcept {
  return 1e6 / std::max(mb_per_s, 1U);
}

// A second; of ps per byte: a kilobyte a second.
constexpr std::uint32_t kMost = 1'000'000'000;

// Of packets, against direct copies: between caches that lie far apart.
constexpr double kFarTimes = 2.5;

// So much of a direct copy is left where the memory that is read lies in large pages: 0.62 to 0.85
// were measured.
constexpr double kLargePagesPart = 0.7;

// A share of a packet is no longer than this: frames beyond are copied, not gathered.
constexpr double kShareBytesMax = 16 << 10;

}  // namespace

bool are_plausible(const WayCosts& costs) noexcept {
  return costs.latency_ns != 0 && costs.packet_ps_per_byte != 0 && costs.latency_ns <= kMost &&
         costs.packet_ns <= kMost && costs.packet_ps_per_byte <= kMost &&
         costs.copy_ps_per_byte <= kMost && costs.direct_latency_ns <= kMost &&
         costs.direct_ps_per_byte <= kMost;
}

CostModel::CostModel(const Capabilities& capabilities, bool is_direct,
                     const Options& options) noexcept
    : options_{options},
      is_direct_{is_direct},
      latency_ns_{.value = static_cast<double>(capabilities.latency_ns)},
      latency_ns_at_first_{latency_ns_.value},
      packet_ns_{.value = static_cast<double>(capabilities.packet_ns)},
      packet_ps_per_byte_{.value = ps_per_byte_at(capabilities.bandwidth_mb_per_s) +
                                   capabilities.cpu_ps_per_byte},
      packet_bytes_max_{capabilities.packet_bytes_max},
      copy_ps_per_byte_{.value = kCopyPsPerByte},
      direct_latency_ns_{.value = static_cast<double>(capabilities.direct_latency_ns)},
      direct_ps_per_byte_{.value = ps_per_byte_at(capabilities.direct_mb_per_s)},
      piece_ps_per_byte_{.value = static_cast<double>(capabilities.cpu_ps_per_byte)} {
  decide();
}

void CostModel::take(const WayCosts& costs, CostOrigin origin) noexcept {
  const auto set = [&](Figure& figure, std::uint32_t value) {
    if (value != 0) {
      figure = {.value = static_cast<double>(value), .origin = origin};
    }
  };
  set(latency_ns_, costs.latency_ns);
  if (costs.latency_ns != 0) {
    latency_ns_at_first_ = latency_ns_.value;
    slow_turns_ = 0;
  }
  set(packet_ns_, costs.packet_ns);
  set(packet_ps_per_byte_, costs.packet_ps_per_byte);
  set(copy_ps_per_byte_, costs.copy_ps_per_byte);
  set(direct_latency_ns_, costs.direct_latency_ns);
  set(direct_ps_per_byte_, costs.direct_ps_per_byte);
  decide();
}

double CostModel::stream_ps_per_byte() const noexcept {
  return std::max(packet_ps_per_byte_.value, reading_ps_per_byte_.value) +
         both_ways_ * quicker_ps_per_byte();
}

/// As long as nobody has measured it, reading is taken to cost nothing.
double CostModel::quicker_ps_per_byte() const noexcept {
  return std::min(packet_ps_per_byte_.value, reading_ps_per_byte_.value);
}

double CostModel::eager_ns(std::uint64_t bytes) const noexcept {
  const auto size = static_cast<double>(bytes);
  // The first packet is read when it is filled, those behind it while others are.
  const double first = std::min(size, static_cast<double>(packet_bytes_max_));
  const double first_ps = (1 - both_ways_) * quicker_ps_per_byte();
  // Half of the messages are taken to come before their receive, and are copied once more.
  return latency_ns_.value +
         (size * (stream_ps_per_byte() + copy_ps_per_byte_.value / 2) + first * first_ps) / 1000;
}

double CostModel::rendezvous_ns(std::uint64_t bytes) const noexcept {
  const double announced = 2 * latency_ns_.value;
  const double size = static_cast<double>(bytes);
  if (is_direct_) {
    return announced + latency_ns_.value + direct_latency_ns_.value +
           size * direct_ps_per_byte_.value / 1000;
  }
  return packets_ns(bytes);
}

double CostModel::packets_ns(std::uint64_t bytes) const noexcept {
  return 3 * latency_ns_.value + static_cast<double>(bytes) * stream_ps_per_byte() / 1000;
}

double CostModel::in_place_ns(std::uint64_t bytes, double away_ns) const noexcept {
  // Who waits for it rings after 15 us, and then lets him have the processor.
  constexpr double kStartNs = 40'000;
  const double both_ns = packets_ns(bytes);
  const double in_place_ns = std::max(away_ns - kStartNs, 0.0);
  return away_ns + std::max(both_ns - in_place_ns / 2, 0.0);
}

double CostModel::read_beside_ns(std::uint64_t bytes, double away_ns) const noexcept {
  const double read_ns = rendezvous_ns(bytes);
  return read_ns <= away_ns || bytes >= direct_from_bytes_
             ? read_ns
             : away_ns + packets_ns(bytes) * (1 - away_ns / read_ns);
}

/// From where on direct copies of which a byte takes so long are faster than packets. Two straight
/// lines: packets begin sooner, and perhaps go slower.
std::uint64_t CostModel::find_direct_from(double ps_per_byte,
                                          double stream_ps_per_byte) const noexcept {
  const double slower = stream_ps_per_byte - ps_per_byte;
  const double from = is_direct_ && slower > 0 ? direct_latency_ns_.value * 1000 / slower : 1e18;
  return from < 1e18 ? static_cast<std::uint64_t>(from) : kNever;
}

void CostModel::decide() noexcept {
  const double stream_ps = stream_ps_per_byte();
  direct_from_bytes_ = find_direct_from(direct_ps_per_byte_.value, stream_ps);
  large_pages_from_bytes_ =
      find_direct_from(direct_ps_per_byte_.value * kLargePagesPart, stream_ps);
  read_from_bytes_ =
      find_direct_from(direct_ps_per_byte_.value, std::max(stream_ps, own_reading_ps_.value));
  // Both in nanoseconds: a packet of its own, against the wait of those in front for its bytes.
  share_bytes_ = static_cast<std::uint32_t>(
      std::min(packet_ns_.value * 1000 / std::max(packet_ps_per_byte_.value, 1.0), kShareBytesMax));
  // A packet, as a rule, where processors copy: a shorter one would be one more of the message.
  head_bytes_ = is_direct_ ? options_.eager_bytes_max
                           : static_cast<std::uint64_t>(2 * latency_ns_.value * 1000 /
                                                        std::max(packet_ps_per_byte_.value, 1.0));
  if (options_.eager_bytes != 0) {
    eager_bytes_ = unawaited_eager_bytes_ = computing_eager_bytes_ = options_.eager_bytes;
    return;
  }
  const auto most = static_cast<double>(options_.eager_bytes_max);
  eager_bytes_ = find_eager_bytes();
  const double answer_ns = 2 * latency_ns_.value + direct_latency_ns_.value;
  const double unawaited = answer_ns * 1000 / std::max(packet_ps_per_byte_.value, 1.0);
  // Whatever the answer costs: who does not wait would rather not copy what the receiver can read.
  const double unawaited_most = std::min(static_cast<double>(eager_bytes_), most / 2);
  unawaited_eager_bytes_ =
      is_direct_
          ? static_cast<std::uint64_t>(std::clamp(
                unawaited, std::min(unawaited_most, static_cast<double>(options_.eager_bytes_min)),
                unawaited_most))
          : eager_bytes_;
  const double handed_over = kHandOverNs * 1000 / std::max(packet_ps_per_byte_.value, 1.0);
  computing_eager_bytes_ = is_direct_ ? std::min(unawaited_eager_bytes_,
                                                 static_cast<std::uint64_t>(handed_over))
                                      : eager_bytes_;
}

/// Up to there the costs of an eager message are a straight line as far as its first packet goes,
/// and another one behind it; those of an announced one are one line. So each of the two is crossed
/// once, or the dearer slope never catches up.
std::uint64_t CostModel::find_eager_bytes() const noexcept {
  const std::uint64_t most = options_.eager_bytes_max;
  // Of what fits one packet the sums are too small to tell: an announcement is two packets more
  // that both sides handle. Unless packets are far slower than direct copies.
  const bool is_near = is_direct_ && stream_ps_per_byte() < kFarTimes * direct_ps_per_byte_.value;
  const std::uint64_t least =
      std::min(most, std::max<std::uint64_t>(options_.eager_bytes_min,
                                             is_near ? packet_bytes_max_ : 0));
  const auto excess_ns = [&](std::uint64_t bytes) {
    return eager_ns(bytes) - rendezvous_ns(bytes);
  };
  std::uint64_t begin = 0;
  for (const std::uint64_t end : {std::min<std::uint64_t>(packet_bytes_max_, most), most}) {
    if (const double excess = excess_ns(end); excess > 0) {
      const double before = std::min(excess_ns(begin), 0.0);
      const double part = before / (before - excess);
      const auto crossing = static_cast<double>(begin) + part * static_cast<double>(end - begin);
      return std::clamp(static_cast<std::uint64_t>(crossing), least, most);
    }
    begin = end;
  }
  return most;
}

void CostModel::measured_reading(std::uint64_t bytes, std::uint64_t ns,
                                 bool is_as_ours) noexcept {
  if (!is_direct_ || bytes < kMeasuredBytesMin || ns == 0) {
    return;
  }
  const double measured = static_cast<double>(ns) * 1000 / static_cast<double>(bytes);
  if (own_reading_ps_.corrections == 0) {
    own_reading_ps_.value = packet_ps_per_byte_.value;
  }
  if (is_copied_directly(kLongBytesMin)) {
    correct_other(own_reading_ps_, measured);
  } else {
    correct(own_reading_ps_, measured, is_new(own_reading_ps_) ? kFirstWeight : kNewWeight);
  }
  if (is_as_ours) {
    learn_reading(own_reading_ps_.value);
  } else {
    decide();
  }
}

void CostModel::told_reading(std::uint64_t ps_per_byte) noexcept {
  if (is_direct_ && ps_per_byte != 0 && ps_per_byte <= kMost) {
    learn_reading(static_cast<double>(ps_per_byte));
  }
}

/// Both are means already.
void CostModel::learn_reading(double ps_per_byte) noexcept {
  if (reading_ps_per_byte_.corrections == 0) {
    reading_ps_per_byte_.value = ps_per_byte;
  }
  correct(reading_ps_per_byte_, ps_per_byte, kFasterWeight);
  decide();
}

void CostModel::set_both_ways(double share) noexcept {
  both_ways_ = share;
  decide();
}

void CostModel::measured_direct(std::uint64_t bytes, std::uint64_t ns) noexcept {
  const auto size = static_cast<double>(bytes);
  const auto time = static_cast<double>(ns);
  const bool is_other = !is_copied_directly(bytes);
  const auto learn = [&](Figure& figure, double measured) {
    is_other ? correct_other(figure, measured) : correct(figure, measured);
  };
  if (bytes >= kLongBytesMin) {
    learn(direct_ps_per_byte_, std::max(time - direct_latency_ns_.value, 0.0) * 1000 / size);
  } else {
    learn(direct_latency_ns_, std::max(time - size * direct_ps_per_byte_.value / 1000, 0.0));
  }
  decide();
}

void CostModel::measured_packets(std::uint64_t bytes, std::uint64_t ns) noexcept {
  // A network that is simulated takes packets at once, and what they cost passes afterwards.
  const bool is_timed = is_direct_ || ns != 0;
  if (bytes >= kMeasuredBytesMin && is_timed) {
    const bool is_other = is_direct_ && is_copied_directly(kLongBytesMin);
    const double measured = static_cast<double>(ns) * 1000 / static_cast<double>(bytes);
    if (is_other) {
      correct_other(packet_ps_per_byte_, measured);
    } else {
      correct(packet_ps_per_byte_, measured,
              is_new(packet_ps_per_byte_) ? kFirstWeight : kNewWeight);
    }
    decide();
  }
}

void CostModel::measured_turn(std::uint64_t ns, std::uint64_t head_bytes) noexcept {
  if (is_direct_ || ns == 0) {  // A clock that stands still says nothing.
    return;
  }
  const double measured = static_cast<double>(ns) / 2;
  if (measured < latency_ns_.value) {
    slow_turns_ = 0;
    correct(latency_ns_, measured, kFasterWeight);
    decide();
    return;
  }
  const double head_ns = static_cast<double>(head_bytes) * packet_ps_per_byte_.value / 1000;
  if (head_ns > kHeadPartMax * static_cast<double>(ns)) {
    return;
  }
  least_ns_ = slow_turns_ == 0 ? measured : std::min(least_ns_, measured);
  if (++slow_turns_ == kSlowTurns) {
    slow_turns_ = 0;
    const double times = latency_ns_.origin == CostOrigin::profile ? kLatencyTimesMaxOfProfile
                                                                   : kLatencyTimesMax;
    correct(latency_ns_, std::min(least_ns_, times * latency_ns_at_first_), kFirstWeight);
    decide();
  }
}

void CostModel::measured_copy(std::uint64_t bytes, std::uint64_t ns) noexcept {
  if (is_direct_ || bytes < kMeasuredBytesMin || ns == 0) {
    return;
  }
  correct(copy_ps_per_byte_, static_cast<double>(ns) * 1000 / static_cast<double>(bytes),
          is_new(copy_ps_per_byte_) ? kFirstWeight : kNewWeight);
  decide();
}

void CostModel::measured_rate(std::uint64_t ps_per_byte) noexcept {
  if (is_direct_) {
    return;
  }
  correct(packet_ps_per_byte_, static_cast<double>(ps_per_byte),
          is_new(packet_ps_per_byte_) ? kFirstWeight : kNewWeight);
  decide();
}

CostModel::Other CostModel::other(std::uint64_t bytes) const noexcept {
  const double direct_ns = rendezvous_ns(bytes);
  const double in_packets_ns = packets_ns(bytes);
  if (is_copied_directly(bytes)) {
    return {std::max(in_packets_ns / std::max(direct_ns, 1.0) - 1, 0.0),
            packet_ps_per_byte_.corrections};
  }
  return {std::max(direct_ns / std::max(in_packets_ns, 1.0) - 1, 0.0),
          direct_latency_ns_.corrections + direct_ps_per_byte_.corrections};
}

std::uint64_t CostModel::lent_part_bytes() const noexcept {
  constexpr double kTurns = 4;  // That fit into the time of one part.
  constexpr std::uint64_t kStep = 64 << 10;
  constexpr std::uint64_t kMost = 4 << 20;
  const double turn_ns = 2 * latency_ns_.value + packet_ns_.value;
  const double bytes = kTurns * turn_ns * 1000 / std::max(packet_ps_per_byte_.value, 1.0);
  const auto steps = static_cast<std::uint64_t>(std::min(bytes, double{kMost})) / kStep;
  return std::clamp((steps + 1) * kStep, 2 * kStep, kMost);
}

void CostModel::measured_send(std::uint64_t ns) noexcept {
  correct(send_ns_, static_cast<double>(ns));
}

void CostModel::measured_piece(std::uint64_t bytes, std::uint64_t ns) noexcept {
  correct(piece_ps_per_byte_, static_cast<double>(ns) * 1000 / static_cast<double>(bytes));
}

std::uint64_t CostModel::beside_from_bytes() const noexcept {
  if (options_.always_hands_over) {
    return 0;
  }
  return piece_ps_per_byte_.corrections == 0
             ? kNever
             : static_cast<std::uint64_t>(kHandOverNs * 1000 /
                                          std::max(piece_ps_per_byte_.value, 1e-3));
}

void CostModel::lose_direct() noexcept {
  is_direct_ = false;
  reading_ps_per_byte_ = {};
  both_ways_ = 0;
  decide();
}

}  // namespace sterna::net
