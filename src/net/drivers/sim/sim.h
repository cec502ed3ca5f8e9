// A simulated network between nodes that live in one process: delays drawn from a seed, time from
// an injected clock, order kept or not, full channels, nodes that vanish. For tests; no rail of a
// job.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/spin_lock.h"
#include "net/driver.h"
#include "net/drivers/decorators/links.h"
#include "net/opening/bootstrap.h"

namespace sterna::net {

struct SimOptions {
  std::uint32_t node_count = 2;
  std::uint64_t seed = 1;
  Clock* clock = nullptr;  // Not null; outlives the network.
  std::uint64_t delay_ns_min = 0;
  std::uint64_t delay_ns_max = 0;
  bool is_ordered = true;  // Of one channel. False: delays alone decide.
  // Of a channel, one packet after the other: so long for a packet, and its bytes; 0: no bound.
  std::uint64_t packet_ns = 0;
  std::uint64_t ps_per_byte = 0;
  std::uint32_t profile_mb_per_s = 0;  // What its driver says of it; 0: the truth.
  std::uint32_t profile_latency_ns = 0;  // The same.
  bool has_direct = false;  // write_remote and read_remote copy within the process, and if they
  bool is_direct_timed = false;  // take time, turn `direct_clock` on by as much.
  std::uint64_t direct_latency_ns = 500;
  std::uint64_t direct_ps_per_byte = 125;
  ManualClock* direct_clock = nullptr;
  bool has_short_way = false;  // Channel::try_place and Driver::sight do something.
  std::uint32_t lent_bytes_max = 0;  // Of Channel::try_lend; 0: it lends nothing.
  std::uint32_t packet_bytes_max = 1024;
  std::uint32_t channel_packets_max = 64;  // On their way, of one channel; more: full.
  // Of a thousand packets so many vanish, come twice, or with one byte changed. Then the driver
  // says of itself that it may lose packets.
  std::uint32_t lost_per_mille = 0;
  std::uint32_t twice_per_mille = 0;
  std::uint32_t corrupt_per_mille = 0;
  bool hides_faults = false;         // It says that it loses none.
  // Not 0: a wire that is cut can be revived, takes no packets, and after so long is lost again.
  std::uint64_t revive_patience_ns = 0;
  std::vector<std::string> hosts{};  // Of the nodes of a SimCluster; empty: all on one.
};

/// The wires. Any thread.
class SimNetwork {
 public:
  explicit SimNetwork(const SimOptions& options);

  [[nodiscard]] const SimOptions& options() const noexcept { return options_; }
  /// The node is gone: what it sent last arrives, then the others see a loss.
  void lose(std::uint32_t node);
  /// The node takes no packet any more and sends none; what it sent arrives, and nobody sees a
  /// loss.
  void close(std::uint32_t node);
  /// What two nodes send each other stays where it is, and goes on when the wire is whole again: a
  /// cable that was pulled, before anybody has noticed.
  void stall(std::uint32_t one, std::uint32_t other, bool is_stalled);
  /// The connection of two nodes breaks: what is on its way is gone, both see a loss. Until mend()
  /// it cannot be revived; but see SimOptions::revive_patience_ns.
  void sever(std::uint32_t one, std::uint32_t other);
  void mend(std::uint32_t one, std::uint32_t other);
  /// Puts bytes on the wire as if `from` had sent them.
  void inject(std::uint32_t from, std::uint32_t to, Packet packet);
  /// The direct read after so many others fails.
  void refuse_read(std::uint32_t after) noexcept {
    reads_to_refused_.store(after + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_read_refused() noexcept {
    std::uint32_t left = reads_to_refused_.load(std::memory_order_relaxed);
    while (left != 0 && !reads_to_refused_.compare_exchange_weak(left, left - 1,
                                                                 std::memory_order_relaxed)) {
    }
    return left == 1;
  }
  /// What cut(sim) looks at.
  [[nodiscard]] LinkSwitch& links() noexcept { return links_; }
  [[nodiscard]] std::uint64_t packet_count() const noexcept { return packet_count_; }
  /// Of the packets, those whose bytes went straight to their place (PacketSink::place).
  [[nodiscard]] std::uint64_t placed_count() const noexcept { return placed_count_; }
  /// Of the packets that were lent, those whose bytes were read.
  [[nodiscard]] std::uint64_t lent_count() const noexcept { return lent_count_; }
  /// Whether the news that a lent packet was read is on its way, between `one` and `other`, the
  /// smaller one first.
  [[nodiscard]] bool has_news_of_read(std::uint32_t& one, std::uint32_t& other);
  /// When the next packet for anybody arrives; kNever: none is on its way.
  [[nodiscard]] std::uint64_t next_arrival_ns();

 private:
  friend class SimDriver;
  friend class SimChannel;
  struct InFlight {
    enum class Kind : std::uint8_t {
      packet,
      lost,      // `from` is.
      offer,     // It lends what `bytes` is the head of.
      read,      // What it has lent has been read into `place`, or not.
      taken,     // What it was lent, it has;
      returned,  // or not.
    };
    std::uint32_t from;
    Kind kind = Kind::packet;
    std::vector<std::byte> bytes = {};
    std::uint64_t loan = 0;
    std::uint64_t loan_bytes = 0;
    std::span<std::byte> place = {};
    enum class Read : std::uint8_t { open, done, failed } read = Read::open;
  };
  /// A packet that is lent, until its sender knows what has become of it.
  struct Loan {
    std::uint32_t from;
    std::uint32_t to;
    Piece bytes;
    Lent* lent;
  };
  struct Node {
    std::multimap<std::uint64_t, InFlight> arriving;  // By time.
    std::vector<std::uint64_t> last_ns;               // By sender: when its last packet arrives,
    std::vector<std::uint64_t> free_ns;               // and when the wire is free for the next.
    std::vector<std::uint32_t> in_flight;             // By sender.
    std::vector<bool> is_stalled;                     // By sender; then what comes waits here.
    std::vector<std::vector<InFlight>> stalled;
    std::vector<bool> is_severed;  // By sender;
    std::vector<bool> is_awaited;  // and this node has revived it all the same.
    bool is_lost = false;
    bool is_closed = false;
  };
  /// `bytes`: what the wire is busy with.
  void arrive(std::uint32_t to, InFlight what, std::uint64_t bytes) STERNA_REQUIRES(lock_);
  [[nodiscard]] bool has_way(std::uint32_t from, std::uint32_t to) const STERNA_REQUIRES(lock_);
  /// What has come for the node by now. False: nothing.
  [[nodiscard]] bool take(std::uint32_t node, InFlight& found);
  // sim_loans.cc
  [[nodiscard]] SendState lend(std::uint32_t from, std::uint32_t to, Packet head, Piece bytes,
                               Lent& lent);
  void take_back(Lent& lent);
  void begin_read(std::uint32_t node, InFlight offer, std::span<std::byte> place);
  /// Whether all bytes are there.
  [[nodiscard]] bool end_read(const InFlight& read);
  void answer(std::uint32_t node, const InFlight& about, InFlight::Kind what);
  void end_loan(std::uint64_t loan, Lent::State state);
  void return_loans(std::uint32_t from, std::uint32_t to) STERNA_REQUIRES(lock_);
  void break_reads(std::uint32_t from, std::uint32_t to) STERNA_REQUIRES(lock_);
  void sever_one(std::uint32_t from, std::uint32_t to) STERNA_REQUIRES(lock_);
  /// True: the wire is whole, or its driver believes so.
  [[nodiscard]] bool revive(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool is_lost(std::uint32_t node);
  [[nodiscard]] bool is_severed(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] bool is_closed(std::uint32_t node);
  [[nodiscard]] bool happens(std::uint32_t per_mille) STERNA_REQUIRES(lock_);
  [[nodiscard]] SendState send(std::uint32_t from, std::uint32_t to, std::span<const Piece> pieces);
  void put(std::uint32_t from, std::uint32_t to, std::vector<std::byte> bytes)
      STERNA_REQUIRES(lock_);

  const SimOptions options_;
  LinkSwitch links_{options_.node_count};
  std::atomic<std::uint32_t> reads_to_refused_{0};  // Relaxed: a count. 0: none is.
  SpinLock lock_;
  Random random_ STERNA_GUARDED_BY(lock_);
  std::vector<Node> nodes_ STERNA_GUARDED_BY(lock_);
  std::map<std::uint64_t, Loan> loans_ STERNA_GUARDED_BY(lock_);
  std::uint64_t next_loan_ STERNA_GUARDED_BY(lock_) = 1;
  std::uint64_t lent_count_ = 0;
  std::uint64_t packet_count_ = 0;
  std::atomic<std::uint64_t> placed_count_{0};  // Relaxed: for tests that look at it afterwards.
};

/// The start of a node of a simulated job: all on one host, nothing to exchange.
class SimBootstrap final : public Bootstrap {
 public:
  SimBootstrap(SimNetwork& network, JobMap job)
      : SimBootstrap{std::vector{&network}, std::move(job)} {}
  /// `networks`: of the rails, in their order.
  SimBootstrap(std::vector<SimNetwork*> networks, JobMap job)
      : networks_{std::move(networks)}, job_{std::move(job)} {}
  [[nodiscard]] const JobMap& job() const noexcept override { return job_; }
  [[nodiscard]] const HostShare& host() const noexcept override { return host_; }
  Result<std::vector<std::vector<std::byte>>> exchange(
      std::span<const std::byte> /*blob*/) noexcept override {
    return Error{Errc::unsupported, "simulated nodes have nothing to exchange"};
  }
  [[nodiscard]] const LinkSwitch* links() const noexcept override {
    return &networks_.front()->links();
  }
  [[nodiscard]] SimNetwork& network(std::size_t rail = 0) const noexcept {
    return *networks_[rail];
  }

 private:
  const std::vector<SimNetwork*> networks_;
  const JobMap job_;
  const HostShare host_;
};

/// Opens only with a SimBootstrap. Not among the built-in drivers.
extern const DriverEntry kSimDriver;
/// The same over the other networks of the bootstrap: rails of one way.
extern const DriverEntry kSecondSimDriver;
extern const DriverEntry kThirdSimDriver;

}  // namespace sterna::net
