// The cost model of one way to one peer: latency + bytes / rate + processor time per byte. It
// starts from the profile of the driver, takes over what was sampled (net/costs/sampler.h), and is
// corrected by what messages turn out to cost; it decides between eager and rendezvous, how the
// bytes of a rendezvous go and which frames that wait share a packet, and says why.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "net/driver.h"

namespace sterna::net {

/// Where a figure comes from: the last that was taken over. Corrections are counted apart.
enum class CostOrigin : std::uint8_t {
  profile,  // What the driver says of networks of its kind.
  cached,   // Sampled by an earlier job of this machine.
  sampled,  // By this job.
};
[[nodiscard]] const char* to_string(CostOrigin origin) noexcept;

/// What a way was measured to cost; 0: not measured. Sent between nodes and kept in a file.
struct WayCosts {
  std::uint32_t latency_ns = 0;  // Half of a round trip of a small packet.
  std::uint32_t packet_ns = 0;   // One more packet, however small, behind others.
  std::uint32_t packet_ps_per_byte = 0;
  std::uint32_t copy_ps_per_byte = 0;
  std::uint32_t direct_latency_ns = 0;
  std::uint32_t direct_ps_per_byte = 0;
  bool operator==(const WayCosts&) const = default;
};

/// Whether a network of this world can cost that: nothing takes more than a second, and what is
/// always measured is there. Others' figures are asked before they are believed.
[[nodiscard]] bool are_plausible(const WayCosts& costs) noexcept;

/// Figures in nanoseconds and picoseconds per byte. Not thread-safe: guarded by who holds it.
class CostModel {
 public:
  struct Options {
    std::uint64_t eager_bytes = 0;      // Forces the threshold; 0: the model decides.
    std::uint64_t eager_bytes_min = 0;  // Smaller ones are eager in any case.
    std::uint64_t eager_bytes_max = 64 << 10;
    std::uint64_t lent_bytes = 0;    // From here on messages are lent; 0: the model decides.
    bool always_hands_over = false;  // Else the model decides.
  };

  CostModel(const Capabilities& capabilities, bool is_direct, const Options& options) noexcept;

  /// Sent at once, copied on both sides; the receiver copies once more when it comes too early.
  [[nodiscard]] double eager_ns(std::uint64_t bytes) const noexcept;
  /// Announced, answered, then copied directly where that is possible, else sent in packets.
  [[nodiscard]] double rendezvous_ns(std::uint64_t bytes) const noexcept;

  // A message whose sender computes for `away_ns` first.
  /// In packets that somebody fills in its place, by turns with who reads them on one processor, at
  /// half the pace, once he has been woken for it; and then both at once.
  [[nodiscard]] double in_place_ns(std::uint64_t bytes, double away_ns) const noexcept;
  /// Read by the receiver, and the rest in packets when the sender is back, where those are faster.
  [[nodiscard]] double read_beside_ns(std::uint64_t bytes, double away_ns) const noexcept;

  /// Messages of at most so many bytes are eager. Constant between calls of measured_*.
  [[nodiscard]] std::uint64_t eager_bytes() const noexcept { return eager_bytes_; }

  /// The same where the sender does not wait and the receiver can read: as long as to write them
  /// takes the sender less than the receiver's answer and the beginning of its copy take.
  [[nodiscard]] std::uint64_t unawaited_eager_bytes() const noexcept {
    return unawaited_eager_bytes_;
  }
  /// The same where the sender computes meanwhile: no more than he writes in the time that it may
  /// take him to hand a message over (paper 004 §4.2).
  [[nodiscard]] std::uint64_t computing_eager_bytes() const noexcept {
    return computing_eager_bytes_;
  }

  /// Announced messages of at least so many bytes are copied directly, shorter ones sent in
  /// packets, of which one is filled while another is read. kNever: all in packets.
  [[nodiscard]] std::uint64_t direct_from_bytes() const noexcept { return direct_from_bytes_; }
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// They would be from so many bytes on if the memory that is read lay in large pages
  /// (memory/large_pages.h).
  [[nodiscard]] std::uint64_t large_pages_from_bytes() const noexcept {
    return large_pages_from_bytes_;
  }
  /// For who reads a message that the peer could send in packets: those take as long as we were
  /// seen to read them, if that is longer than to fill them.
  [[nodiscard]] std::uint64_t read_from_bytes() const noexcept { return read_from_bytes_; }
  /// Eager messages of at least so many bytes are now and then announced and copied directly, since
  /// nothing would be known of that otherwise; kNever: none.
  [[nodiscard]] std::uint64_t tried_from_bytes() const noexcept {
    return is_direct_ && options_.eager_bytes == 0 ? kTriedBytesMin : kNever;
  }
  // A copy and a cache line that another core takes; with some distance, since the receiver gets
  // the message that much later.
  static constexpr double kHandOverNs = 1000;

  /// Frames of at most so many bytes, header included, that wait for the way share a packet: those
  /// in front of one wait for its bytes, which takes less than a packet of its own.
  [[nodiscard]] std::uint32_t share_bytes() const noexcept { return share_bytes_; }

  /// Of an announced message so many bytes are on their way by the time that its answer is back;
  /// where it might be copied directly, as much as a packet holds.
  [[nodiscard]] std::uint64_t head_bytes() const noexcept { return head_bytes_; }

  /// To send a message takes the sender longer than to leave it to another core: who does not wait
  /// for it lets an idle worker do that (paper 004 §4.2). Not before it has been measured.
  [[nodiscard]] bool hands_over() const noexcept {
    return options_.always_hands_over || send_ns_.value >= kHandOverNs;
  }

  /// A piece of a message of at least so many bytes is worth handing to another core while this one
  /// sends the piece before it (paper 004 §4.2, fig. 10): to send it takes longer than to hand it
  /// over. kNever: none, or not measured yet.
  [[nodiscard]] std::uint64_t beside_from_bytes() const noexcept;
  /// Of a message that is lent so many bytes are one part, of which some are under way: to announce
  /// one and to hear of its end takes a fraction of the time that its bytes take.
  [[nodiscard]] std::uint64_t lent_part_bytes() const noexcept;
  [[nodiscard]] std::uint64_t lent_bytes_set() const noexcept { return options_.lent_bytes; }

  /// Takes over what was measured apart from messages.
  void take(const WayCosts& costs, CostOrigin origin) noexcept;

  /// A copy of `bytes` took `ns`: corrects the rate of direct writes or of packets by a moving
  /// mean.
  void measured_direct(std::uint64_t bytes, std::uint64_t ns) noexcept;
  void measured_packets(std::uint64_t bytes, std::uint64_t ns) noexcept;
  /// A packet was read in `ns`. `is_as_ours`: so does the peer read ours. Of ways that are copied
  /// directly, else nothing: there the rate of packets is that of both sides.
  void measured_reading(std::uint64_t bytes, std::uint64_t ns, bool is_as_ours) noexcept;
  /// The same as the peer has measured it.
  void told_reading(std::uint64_t ps_per_byte) noexcept;
  /// For that: what was measured here; 0: nothing.
  [[nodiscard]] std::uint64_t own_reading_ps() const noexcept {
    return static_cast<std::uint64_t>(own_reading_ps_.value);
  }
  /// Of the messages that come so many do while others go, from 0 to 1: see BothWays.
  void set_both_ways(double share) noexcept;
  /// Of ways that are not copied directly, else nothing. From the announcement of a message to its
  /// answer, which was given at once, it took `ns`; a head of so many bytes went behind it.
  void measured_turn(std::uint64_t ns, std::uint64_t head_bytes = 0) noexcept;
  /// A message that had come before its receive was copied once more in `ns`.
  void measured_copy(std::uint64_t bytes, std::uint64_t ns) noexcept;
  /// By packets that left while others waited, a byte takes so long.
  void measured_rate(std::uint64_t ps_per_byte) noexcept;
  /// One short packet took its sender `ns`.
  void measured_send(std::uint64_t ns) noexcept;
  /// A piece of so many bytes did.
  void measured_piece(std::uint64_t bytes, std::uint64_t ns) noexcept;

  [[nodiscard]] bool is_copied_directly(std::uint64_t bytes) const noexcept {
    return bytes >= direct_from_bytes_;
  }
  /// Of the two ways of an announced message that which is not chosen.
  struct Other {
    double excess;           // So much longer does it take, as a part of what the chosen one does.
    std::uint32_t measures;  // Of it, so far.
  };
  [[nodiscard]] Other other(std::uint64_t bytes) const noexcept;

  /// Direct writes turned out to be impossible.
  void lose_direct() noexcept;

  /// The sums behind the choice for `bytes`, one line. Announced messages of at least
  /// `lent_from_bytes` are lent (lending.h); kNever: this way lends none.
  [[nodiscard]] std::string explain(std::uint64_t bytes,
                                    std::uint64_t lent_from_bytes = kNever) const;

  /// One figure and where it comes from.
  struct Figure {
    double value = 0;
    CostOrigin origin = CostOrigin::profile;
    std::uint32_t corrections = 0;  // Since then.
  };
  struct Row {
    const char* name;  // As in WayCosts.
    Figure figure;
  };
  /// Those that this way has, for reports.
  [[nodiscard]] std::array<Row, 9> figures() const noexcept;
  [[nodiscard]] bool is_direct() const noexcept { return is_direct_; }
  /// All of that, and the thresholds, in one line.
  [[nodiscard]] std::string describe() const;

 private:
  static constexpr std::uint64_t kTriedBytesMin = 32 << 10;

  void decide() noexcept;
  void learn_reading(double ps_per_byte) noexcept;
  [[nodiscard]] double packets_ns(std::uint64_t bytes) const noexcept;
  /// What a byte of a long message takes in packets.
  [[nodiscard]] double stream_ps_per_byte() const noexcept;
  [[nodiscard]] double quicker_ps_per_byte() const noexcept;
  [[nodiscard]] std::uint64_t find_direct_from(double ps_per_byte,
                                               double stream_ps_per_byte) const noexcept;
  [[nodiscard]] std::uint64_t find_eager_bytes() const noexcept;
  [[nodiscard]] std::string explain_lending(bool is_lent, std::uint64_t from_bytes) const;

  Options options_;
  bool is_direct_;
  Figure latency_ns_;
  double latency_ns_at_first_ = 0;  // As it was taken over, without corrections.
  double least_ns_ = 0;             // Of the last slow turns in a row, their half: measured_turn().
  std::uint32_t slow_turns_ = 0;
  Figure packet_ns_;
  Figure packet_ps_per_byte_;  // On the wire and of the processor; of direct ways, to fill one.
  Figure reading_ps_per_byte_;  // Of direct ways: by who takes it from there, once measured.
  Figure own_reading_ps_;       // The same, without what the peer says.
  double both_ways_ = 0;
  std::uint32_t packet_bytes_max_ = 0;
  Figure copy_ps_per_byte_;    // An early message is copied once more.
  Figure direct_latency_ns_;
  Figure direct_ps_per_byte_;
  Figure send_ns_{.value = kHandOverNs / 2};  // The sender's own time; unknown at first.
  Figure piece_ps_per_byte_;  // The same of pieces of a message; of the profile at first.
  std::uint64_t eager_bytes_ = 0;
  std::uint64_t unawaited_eager_bytes_ = 0;
  std::uint64_t computing_eager_bytes_ = 0;
  std::uint64_t direct_from_bytes_ = 0;
  std::uint64_t large_pages_from_bytes_ = 0;
  std::uint64_t read_from_bytes_ = 0;
  std::uint32_t share_bytes_ = 0;
  std::uint64_t head_bytes_ = 0;
};

}  // namespace sterna::net
