// What a network driver provides, and the list of the built-in ones.
//
// A driver moves packets, whole, between nodes over one kind of network. Matching, rendezvous,
// aggregation and order across rails belong above it (net/transport.h), and waiting belongs to
// progress/. So a driver never blocks, never switches user threads, and calls upwards through
// PacketSink only.
//
// Life: open (by DriverEntry, at start-up) -> close (refuse new work) -> poll until is_drained() ->
// destroy. Channels belong to their driver and live until it is destroyed.
//
// One driver may be open several times in a node, one instance a network (drivers/choice.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/tunable.h"
#include "net/capabilities.h"
#include "net/packet_sink.h"

namespace sterna {
class Clock;
class Log;
}  // namespace sterna

namespace sterna::net {

class Bootstrap;
class InvitationBoard;

/// Bytes of this process, read when a packet or a message is sent.
using Piece = std::span<const std::byte>;

[[nodiscard]] constexpr std::size_t bytes_of(std::span<const Piece> pieces) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) {
    bytes += piece.size();
  }
  return bytes;
}

/// Bytes of another process of this host, written by Channel::write_remote.
struct RemotePiece {
  std::uint64_t address;
  std::uint64_t bytes;
};

inline constexpr std::uint32_t kPacketPiecesMax = 64;  // Of one try_send.
inline constexpr std::size_t kPacketsAtOnceMax = 16;   // Of one try_send_several.

enum class SendState : std::uint8_t {
  accepted,  // The bytes are copied: the caller may reuse its buffers.
  full,      // No room now; poll, then try again. This is flow control, not a failure.
  closed,    // The peer is lost or the driver is closed: no packet will be accepted any more.
};

/// What the program of a peer does.
enum class PeerIs : std::uint8_t {
  unknown,
  at_hand,  // In a call and awake, or soon in one: what is left to it is done at once.
  asleep,   // In a call.
  away,     // It computes, perhaps while somebody progresses in its place.
};

/// What a link knew of a rail when that was lent a packet: rails/lent_pace.h.
struct LentStamp {
  std::uint64_t bytes = 0;
  std::uint64_t ended_bytes = 0;
  std::uint64_t from_ns = 0;
  bool was_idle = false;     // Nothing else was lent by the rail.
  bool is_of_burst = false;  // Nothing has ended since the rail was idle.
};

/// A packet that its sender has lent (Channel::try_lend): what has become of it. Stays where it is
/// while it is under way.
struct Lent {
  enum class State : std::uint8_t {
    none,
    under_way,
    taken,     // The peer has all of its bytes.
    returned,  // It has not got, or not all of, them, and never will: send them another way.
  };
  std::atomic<State> state{State::none};  // By Driver::poll: releases the bytes to their owner.
  std::uint64_t id = 0;                   // The driver's.
  // The link's, of several rails: from when on it is late, by which one it went, and what was known
  // of that.
  std::uint64_t stuck_ns = 0;
  std::uint32_t rail = 0;
  LentStamp stamp = {};
};

/// The way to one peer node. One sender and the poller of the driver may use it at the same time;
/// two senders may not: the gate that owns the channel serialises them.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Queues one packet: the bytes of `pieces` (kPacketPiecesMax of them at most,
  /// Capabilities::packet_bytes_max bytes in all, not empty) one after the other. Starts at once
  /// what the network takes; Driver::poll pushes the rest.
  [[nodiscard]] virtual SendState try_send(std::span<const Piece> pieces) noexcept = 0;

  /// In PacketSink::on_packet, of a packet of this peer: whether to read it costs as much as the
  /// peer pays for ours, when ours go in packets too. Asked now and then.
  [[nodiscard]] virtual bool is_read_as_ours() const noexcept { return true; }

  /// Whether packets take now what they will take from now on: not while the driver's memory for
  /// them is new. Asked by the poller after packets of long messages, as the next one.
  [[nodiscard]] virtual bool is_settled() const noexcept { return true; }
  /// Whether the receiver is behind for a moment, so that this packet costs more than others.
  [[nodiscard]] virtual bool is_receiver_behind() const noexcept { return false; }

  /// Several packets, which are there at once: as try_send() of one after the other, for less.
  /// Between 1 and kPacketsAtOnceMax, of kPacketPiecesMax pieces in all. Returns how many were
  /// accepted; `state` is what the next one got.
  [[nodiscard]] virtual std::size_t try_send_several(
      std::span<const std::span<const Piece>> packets, SendState& state) noexcept {
    std::size_t count = 0;
    state = SendState::accepted;
    while (count < packets.size() && (state = try_send(packets[count])) == SendState::accepted) {
      ++count;
    }
    return count;
  }
  /// Whether it is for less: all that is given goes in one call of the system.
  [[nodiscard]] virtual bool gains_by_several() const noexcept { return false; }

  // The short way, optional, for the sender: one packet, written where it leaves from.

  /// Room for one packet of `bytes` bytes, at most packet_bytes_max: the caller writes all of them,
  /// then calls send_placed(), with no other call to the channel in between. Null: not this way, or
  /// not now; try_send() says why.
  [[nodiscard]] virtual std::byte* try_place(std::uint32_t /*bytes*/) noexcept { return nullptr; }
  /// As try_send() of what was written; `full` means that nothing happened. `must_ring`: the peer
  /// was seen asleep, and ring() is to follow soon; else unchanged.
  [[nodiscard]] virtual SendState send_placed(bool& /*must_ring*/) noexcept {
    return SendState::full;
  }
  /// Wakes the peer: a system call. From any thread.
  virtual void ring() noexcept {}

  /// True: write_remote works towards this peer (asked of the system when the channel was opened).
  [[nodiscard]] virtual bool can_write_remote() const noexcept { return false; }
  /// True: neither write_remote nor read_remote will ever work towards this peer, though the driver
  /// has them: the system or a setting forbids it. A driver that learns it after connect() says so
  /// by PacketSink::on_copies_refused, too.
  [[nodiscard]] virtual bool are_copies_refused() const noexcept { return false; }

  /// The caller waits for the peer's node. If its program is away (AbsenceFlag), wakes who
  /// progresses there meanwhile; whether it did. One that is away for a moment only if `is_long`:
  /// so has the caller waited. From any thread, after a seq_cst fence.
  virtual bool ring_absent(bool /*is_long*/) noexcept { return false; }
  /// What its program does, for who may act in its place. A hint.
  [[nodiscard]] virtual PeerIs peer_is() const noexcept { return PeerIs::unknown; }

  /// That of the peer, see Driver::invitations(); null: it tells nothing.
  [[nodiscard]] virtual InvitationBoard* invitations() noexcept { return nullptr; }

  /// Copies `local`, as one sequence of bytes, to the addresses `remote` of the peer's process;
  /// both have the same length in all. Done when it returns, visible to the peer before any packet
  /// sent after. Long copies are cut by the caller. May be called by several threads at once. Fails
  /// with unsupported, closed (the peer has gone) or refused (an address there is not writable).
  virtual Result<> write_remote(std::span<const Piece> /*local*/,
                                std::span<const RemotePiece> /*remote*/) noexcept {
    return Errc::unsupported;
  }

  // Lent packets, optional: the network moves their bytes from where they are to where they belong,
  // with no copy. One more turn of both sides than a packet, so for long ones. Any thread.

  /// The longest that try_lend() takes, without its head; 0: none, or the peer has not been heard
  /// of. What was taken once is again, until the peer is lost.
  [[nodiscard]] virtual std::uint32_t lent_bytes_max() const noexcept { return 0; }
  /// One packet of `head` (kPacketHeadBytes) and `bytes`: these stay where they are, unchanged,
  /// until `lent` says that it has ended, or take_back(). The peer can read them, and nothing else,
  /// until then. `full`: not now.
  [[nodiscard]] virtual SendState try_lend(Packet /*head*/, Piece /*bytes*/,
                                           Lent& /*lent*/) noexcept {
    return SendState::closed;
  }
  /// Of one under way: the bytes and `lent` are the caller's again, nothing of them is told to
  /// anybody any more. For who gives up the peer.
  virtual void take_back(Lent& /*lent*/) noexcept {}
  /// One has ended, or was taken back, which is seen now; `is_whole`: the peer has its bytes. For
  /// ways that learn from it.
  virtual void note_end(const Lent& /*lent*/, bool /*is_whole*/) noexcept {}
  /// Of one under way: its way has fallen silent, and there is another one. Its owner had better
  /// take it back and send it again.
  [[nodiscard]] virtual bool is_stuck(const Lent& /*lent*/) noexcept { return false; }

  /// The other way: copies `from`, memory of the peer's process, to `into`. Works where
  /// can_write_remote() says so, and fails as write_remote() does.
  virtual Result<> read_remote(std::byte* /*into*/, RemotePiece /*from*/) noexcept {
    return Errc::unsupported;
  }
};

/// What a node says of its program in memory that its peers see: whether it is worth while to wake
/// who progresses in the program's place (runtime/background/). Between processes. Who finds kAway
/// makes it kRung, and wakes by it as a futex; kAwayByBell: by what wakes the node from its sleep.
/// kAwayForMoment: as kAway, but by its habit the program is back before anybody has woken. kHeard:
/// who was rung for sleeps again, since the program is in a call that is about to end, and rings.
struct AbsenceFlag {
  enum : std::uint32_t { kPresent, kAway, kRung, kAwayByBell, kAwayForMoment, kHeard };
};

/// One opened network of one node. poll, those of sleeping, close and is_drained are called by one
/// thread at a time; connect and the channels' sends may run at the same time as they.
class Driver {
 public:
  virtual ~Driver() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;

  /// The largest packet to `node`: at least Capabilities::packet_bytes_max, which holds for any.
  [[nodiscard]] virtual std::uint32_t packet_bytes_to(std::uint32_t /*node*/) const noexcept {
    return capabilities().packet_bytes_max;
  }

  /// What peers need in order to reach us, exchanged at start-up through Bootstrap::exchange;
  /// empty: the job's Bootstrap says it all. Valid as long as the driver.
  [[nodiscard]] virtual Packet address() const noexcept = 0;

  /// Whether this driver is a way to `node`, whose driver of the same name said `peer_address`
  /// (empty while addresses are not known). Pure: it opens nothing.
  [[nodiscard]] virtual bool reaches(std::uint32_t node, Packet peer_address) const noexcept = 0;

  /// The channel to `node`; called on first use, once a node. Never blocks: packets accepted before
  /// the connection stands wait in the channel. A peer may send to us before we connect to it.
  virtual Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept = 0;

  /// After on_peer_lost(node), while the process of the peer may well live: opens the way to it
  /// anew. The channel of connect() is in use again; packets that it accepted before the loss
  /// either arrived before on_peer_lost, or never will (who needs them sends them again).
  /// Reliability and order hold from here on. The peer's driver reports the loss there too, if it
  /// had not, and takes part once the peer revives us: until then, and while nobody answers,
  /// packets wait in the channel. When that takes too long (a setting of the driver), on_peer_lost
  /// is called again. A peer that is not lost: the channel, and nothing happens. Fails with
  /// unsupported, or closed: the peer or this driver has closed in good order. By the poller's
  /// thread, outside poll.
  virtual Result<Channel*> revive(std::uint32_t /*node*/) noexcept { return Errc::unsupported; }

  /// Hands arrived packets, about `packets_max` at most, to `sink`; moves on what waits to be sent.
  /// Returns how many packets were handed over.
  virtual std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept = 0;

  /// A packet that has come and was not handed over: poll() would do that next. Its bytes belong to
  /// its sender and are still to be checked; they stay until pass_sight().
  struct Sight {
    std::uint32_t from_node;
    Packet packet;
  };
  /// The short way, optional, for the poller: looks, up to `looks` times more than once, without
  /// more, for the next packet. False: none has come. One that is for poll() alone is shown empty.
  [[nodiscard]] virtual bool sight(std::uint32_t /*looks*/, Sight& /*seen*/) noexcept {
    return false;
  }
  /// The packet that sight() showed just now counts as handed over. Else it is poll()'s.
  virtual void pass_sight() noexcept {}
  /// sight() comes soon, likely for a packet that is there: what it will read may be called from
  /// where it lies. Anybody.
  virtual void expect_sight() noexcept {}

  /// Readable while there is something to poll for, between prepare_sleep and end_sleep; -1: none
  /// (the driver must then be polled, without sleep). Constant after open.
  [[nodiscard]] virtual int fd() const noexcept = 0;

  /// Tells the peers to ring: from now on fd() becomes readable when a packet arrives, a peer is
  /// lost, or a channel that has answered `full` has room again; or the deadline is soon. False:
  /// there is something to poll for already, do not sleep (end_sleep is not called then).
  [[nodiscard]] virtual bool prepare_sleep() noexcept = 0;
  /// After prepare_sleep(): when to poll again although nothing rang; kNever: that need not be.
  [[nodiscard]] virtual std::uint64_t next_deadline_ns() noexcept { return kNever; }
  /// Takes back prepare_sleep and clears the bell.
  virtual void end_sleep() noexcept = 0;
  /// progress::Source::hear(). A driver with a flag (absence_flag) may leave to that what it would
  /// ring for after prepare_sleep only. Clears the bell.
  virtual bool hear() noexcept { return false; }

  /// The launcher saw the process of `node` end. A driver that would not notice by itself (shared
  /// memory; a way that was never used) closes the channel: packets that did arrive are handed over
  /// by later polls, then on_peer_lost is called. Called by the poller's thread, outside poll.
  virtual void lose_peer(std::uint32_t /*node*/) noexcept {}

  /// The connection to `node` is of no use: as if it had broken. A driver that lends (Channel::
  /// try_lend) lets go of what it holds of the peer, by later polls. By the poller's thread,
  /// outside poll. A node without a connection: nothing happens.
  virtual void abandon(std::uint32_t /*node*/, std::string_view /*reason*/) noexcept {}

  /// What the driver has counted, for the log of a job's end; empty: it counts nothing. By the
  /// poller's thread, or after the last poll.
  [[nodiscard]] virtual std::string figures() const { return {}; }

  /// After end_sleep(): when a peer rang for the sleep that has ended, by the monotonic clock, as
  /// far as the driver knows (0); what a peer wrote, to be doubted.
  [[nodiscard]] virtual std::uint64_t rung_ns() noexcept { return 0; }

  /// Where this node says AbsenceFlag::kAway to the peers of this driver; null: they see nothing.
  /// Lives as long as the driver.
  [[nodiscard]] virtual std::atomic<std::uint32_t>* absence_flag() noexcept { return nullptr; }

  /// Where this node tells the peers of this driver of receives that they may write into, with
  /// write_remote(); null: it cannot. Lives as long as the driver.
  [[nodiscard]] virtual InvitationBoard* invitations() noexcept { return nullptr; }

  /// Refuses new packets and new peers; peers see an orderly end, not a loss.
  virtual void close() noexcept = 0;
  /// After close: whether everything accepted has been handed to the network.
  [[nodiscard]] virtual bool is_drained() const noexcept = 0;
};

/// How much of what the channels of a node have accepted is still in its memory, and leaves only
/// while somebody polls: channels, or packets. The program must not be taken for one that has
/// nothing under way meanwhile. Any thread; relaxed: a hint.
class KeptCount {
 public:
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void remove(std::uint32_t count = 1) noexcept {
    count_.fetch_sub(count, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_any() const noexcept {
    return count_.load(std::memory_order_relaxed) != 0;
  }

 private:
  std::atomic<std::uint32_t> count_{0};
};

struct DriverOptions {
  Bootstrap* bootstrap = nullptr;      // All of these live longer than the driver.
  Clock* clock = nullptr;              // For timeouts; null: the machine's clock.
  const Log* log = nullptr;            // For what no call returns (a stranger came); may be null.
  const Settings* settings = nullptr;  // Values of the entry's tunables; null: their defaults.
  std::string_view instance{};         // What followed '@'; empty: the one for all networks.
  KeptCount* kept = nullptr;           // Null: nobody asks.
};

/// What is known of a driver without opening it.
struct ProbedDriver {
  Capabilities capabilities;
  std::string absent{};  // Why open() would fail on this host, as far as is known; empty: it won't.
};

/// Enough to list a driver without opening it.
struct DriverEntry {
  std::string_view name;              // As written in --drivers and STERNA_DRIVERS.
  std::string_view summary;           // One line, for `sterna info`.
  std::span<const Tunable> tunables;  // For the table of Settings.
  Result<std::unique_ptr<Driver>> (*open)(const DriverOptions&) noexcept;
  Capabilities profile{};  // What its figures begin with; the size of its packets is a setting's.
  // What may follow '@' in a list of drivers, for messages; empty: there is one instance only.
  std::string_view instances{};
  bool is_on_request = false;  // Used only where a list of drivers names it.
  // How many rails each choice of it is, all alike; null: one.
  const Tunable* connections = nullptr;
  // The devices that one opened with these options would use, as topology::processors_near() names
  // them. May take as long as open(). Null: it has none.
  std::vector<std::string> (*devices)(const DriverOptions&) noexcept = nullptr;
  // One opened with these options, whose bootstrap may be null. May take as long as open(). Null:
  // its profile says it.
  ProbedDriver (*probe)(const DriverOptions&) noexcept = nullptr;
};

/// All drivers of this build, the preferred ones first; see net/drivers/builtin.cc to add one.
[[nodiscard]] std::span<const DriverEntry* const> builtin_drivers() noexcept;

}  // namespace sterna::net
