// Measures what the ways of this node cost, at the start of a job, beside its messages: the figures
// of a driver's profile are those of some machine, these are of this one (net/costs/cost.h).
//
// A way is a driver, or a rail of a link, and a host at its other end: all nodes there cost the
// same, so one node of the host measures one node of the other. Of two hosts the one with the
// lowest node measures. So a node measures at most one way to each host, a job of n nodes on one
// host one way in all, and what was measured by an earlier job (costs_file.h) not again. Who comes
// to know a way tells all nodes that have it, or are its other end, and to which messages have
// opened the way already; the others when they do. Nothing is opened to be measured, or to tell.
//
// Measuring is a state machine that poll() steps: it sends a round of packets, and when the peer
// has answered the last, the next. It starts with ways that messages have opened, never waits, and
// takes some hundred microseconds of a node that polls. A round in which either side slept says
// nothing of the way, nor does one whose peer was computing, which shows by how long before it had
// polled: a figure counts only when its four smallest values agree. What does not settle is tried
// again some time later, then less and less often. Between two rounds that hold up messages the way
// is theirs for four times as long, and a round over a link that meets them does not count.
//
//   small round trips                    latency
//   bursts of small packets, less those  one more packet
//   bursts of 8 large ones, less of 2    bytes, of which some are filled while others are read
//   reads of what the peer just wrote    direct copies: their begin and their bytes
//
// Guard of everything: the poller (before the first poll, the owner).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "net/costs/cost.h"
#include "net/costs/costs_file.h"
#include "net/matching/gate.h"
#include "net/opening/bootstrap.h"
#include "net/packets/packet.h"

namespace sterna::net {

class Bond;

class CostSampler {
 public:
  CostSampler(const JobMap& job, Gate* gates, Clock& clock, const Logger& log) noexcept
      : job_{job}, gates_{gates}, clock_{clock}, log_{log} {}

  /// A driver and a host that it reaches; where the host has a link of several rails each of them,
  /// and behind them, since it is to begin with what they cost, the link as a whole.
  struct Way {
    std::uint32_t driver = 0;  // Index of the rail.
    bool is_rail = false;      // Of a link: what it costs the link is told, not the gate.
    std::string host;          // As in JobMap::host_of_node.
    std::vector<std::uint32_t> nodes;
    WayCosts costs;  // All zero: unknown.
    CostOrigin origin = CostOrigin::profile;
  };

  /// Finds the ways, once; the gates are open. Drivers and their names by rail; `bond`, the last of
  /// them, may be null.
  void open(std::vector<Driver*> drivers, std::vector<std::string> names, Bond* bond = nullptr);
  [[nodiscard]] const std::vector<Way>& ways() const noexcept { return ways_; }

  /// What earlier jobs have measured, of the ways that are this node's. Those of the last
  /// kCostsRestSeconds are not measured again.
  void know(std::span<const CostsEntry> entries, std::uint64_t now_s) noexcept;
  /// What this job has measured, at the first node of a host.
  [[nodiscard]] std::vector<CostsEntry> sampled(std::uint64_t at_s) const;

  /// The figures of `ways()[way]` are known.
  void know(std::size_t way, const WayCosts& costs, CostOrigin origin) noexcept;
  /// From now on poll() measures the ways of this node that are not known.
  void start() noexcept { is_measuring_ = is_active_ = true; }
  void stop() noexcept {
    is_active_ = false;
    watched_polls_ = 0;
  }
  /// step() might do something.
  [[nodiscard]] bool is_active() const noexcept { return is_active_ || watched_polls_ != 0; }
  /// A round is under way, here or by a peer, or comes soon: who looks for packets polls.
  [[nodiscard]] bool is_watching() const noexcept {
    return (way_ != kNoWay && steps_left_ == 0) || watched_polls_ != 0;
  }
  /// Sends or copies something, or nothing. Returns how many packets.
  std::uint32_t step() noexcept;
  /// A frame of another node that measures, or answers.
  void accept(std::uint32_t from_node, const Frame& frame) noexcept;
  /// The node looks for packets, in step() or beside it.
  void note_look() noexcept {
    if (is_watching()) {
      looked_ns_ = clock_.now_ns();
    }
  }
  /// The node has slept in the kernel.
  void note_sleep() noexcept {
    ++sleeps_;
    is_round_spoiled_ = true;
  }

 private:
  enum class Phase : std::uint8_t {
    small_one,
    small_burst,
    warm,  // Large packets find their length, and their memory is touched first: not counted.
    large_pair,
    large_burst,
    read_short,  // Each after a round of large ones.
    read_long,
    copy,  // From here on without the peer's help.
    done,
  };
  static constexpr std::uint32_t kSmallBytes = 16;  // Payload of a small packet.
  static constexpr std::uint32_t kShortReadBytes = 4 << 10;
  static constexpr std::uint32_t kLongReadBytes = 64 << 10;
  static constexpr std::uint32_t kCopyBytes = 64 << 10;  // Of the second-level cache.
  static constexpr std::uint64_t kHeldNsMin = 100'000;  // Shorter rounds pass without a rest.
  static constexpr std::uint32_t kLooksMax = 20;  // For ways in use, each after twice the steps.
  static constexpr std::uint32_t kTriesMax = 64;  // Rounds of a phase before it is given up.
  static constexpr std::uint32_t kBufferBytes = 64 << 10;  // On both sides; bounds a packet.
  static constexpr std::size_t kPhaseCount = static_cast<std::size_t>(Phase::done);
  /// The smallest values of a phase, ascending.
  struct Least {
    std::array<std::uint64_t, 4> ns{kNever, kNever, kNever, kNever};
    std::uint32_t count = 0;
    void add(std::uint64_t value) noexcept;
    [[nodiscard]] bool is_settled() const noexcept;
  };

  void add_way(std::uint32_t driver, bool is_rail, std::uint32_t node);
  [[nodiscard]] SendState send_sample(std::span<const Piece> pieces) noexcept;
  [[nodiscard]] CostsEntry entry_of(const Way& way) const;
  [[nodiscard]] bool is_mine(const Way& way) const noexcept;
  [[nodiscard]] bool is_of_link(const Way& way) const noexcept;
  bool find_way() noexcept;
  std::uint32_t send_round() noexcept;
  void end_round(std::uint64_t ns) noexcept;
  void next_phase() noexcept;
  void read_what_came() noexcept;
  void copy_once() noexcept;
  void give_up(const char* why) noexcept;
  void try_later(const char* why) noexcept;
  [[nodiscard]] std::uint64_t gap_ns() const noexcept;
  void conclude() noexcept;
  [[nodiscard]] bool are_of_a_busy_machine(const WayCosts& costs) const noexcept;
  [[nodiscard]] WayCosts sum_up() const noexcept;
  [[nodiscard]] std::uint32_t payload_bytes() const noexcept;
  [[nodiscard]] std::uint32_t large_bytes_max() const noexcept;
  void lengthen(std::uint64_t ns) noexcept;
  void rest(std::uint64_t ns) noexcept;
  void wait_for_messages() noexcept;
  [[nodiscard]] std::uint64_t some_ns() noexcept;
  [[nodiscard]] std::uint32_t packet_count() const noexcept;
  void spread(std::size_t way, std::uint32_t from_node) noexcept;
  void tell_whom_messages_reach() noexcept;
  void tell(std::uint32_t node, const Way& way) noexcept;
  void answer(std::uint32_t from_node, const Frame& frame) noexcept;
  void take_answer(std::uint32_t from_node, const Frame& frame) noexcept;
  void take_result(std::uint32_t from_node, const Frame& frame) noexcept;
  void send(std::uint32_t node, const FrameHeader& header,
            std::span<const std::byte> payload) noexcept;

  const JobMap& job_;
  Gate* const gates_;
  Clock& clock_;
  const Logger& log_;
  std::vector<Driver*> drivers_;
  std::vector<std::string> names_;  // Of the drivers.
  Bond* bond_ = nullptr;
  std::vector<Way> ways_;
  std::uint32_t first_here_ = 0;  // Lowest node of this host.
  bool is_active_ = false;
  // Who measures, or is asked, looks at the clock at each poll.
  std::uint64_t looked_ns_ = 0;
  std::uint32_t watched_polls_ = 0;  // So many more, as one that is asked.
  bool is_measuring_ = false;        // Not only told by others.
  struct Untold {
    std::size_t way;
    std::uint32_t node;
  };
  std::vector<Untold> untold_;  // Who may not know it, and is not reached yet.

  // The measurement under way.
  std::size_t way_ = kNoWay;
  static constexpr std::size_t kNoWay = ~std::size_t{0};
  std::vector<bool> is_tried_;    // By way.
  std::uint32_t steps_left_ = 0;  // Until something is looked at again.
  std::uint64_t rest_until_ns_ = 0;
  std::uint64_t last_ns_ = 0;  // Of the last round, at most.
  std::uint64_t full_since_ns_ = kNever;  // Of messages, since a round was to begin.
  Random random_{1};
  std::uint32_t looks_ = 0;
  std::uint32_t peer_ = 0;
  Phase phase_ = Phase::small_one;
  std::array<Least, kPhaseCount> least_;
  std::uint32_t large_bytes_ = 0;  // Payload of a large packet.
  std::uint32_t tries_ = 0;        // Of this phase.
  std::uint64_t round_ = 0;  // Number of the last round.
  std::uint32_t sent_ = 0;   // Packets of this round.
  std::uint64_t start_ns_ = 0;
  std::uint32_t waited_steps_ = 0;
  bool is_round_spoiled_ = false;
  bool is_round_late_ = false;  // Its answer had to wait for messages.
  std::uint32_t spoiled_in_row_ = 0;
  std::uint64_t peer_address_ = 0;
  std::unique_ptr<std::byte[]> bytes_;  // What is sent, and where it is copied to.

  // As a peer, of each node: several may measure their way to this one at once.
  struct Asked {
    std::uint64_t round = 0;
    std::uint32_t taken = 0;   // Packets of that round.
    std::uint32_t sleeps = 0;  // That the node was told of.
    std::uint64_t gap_ns = 0;  // Before that round.
    std::uint64_t began_ns = 0;
  };
  std::vector<Asked> asked_;  // By node; empty: nobody has asked.
  std::uint32_t sleeps_ = 0;  // Wraps.
  std::unique_ptr<std::byte[]> taken_bytes_;
};

}  // namespace sterna::net
