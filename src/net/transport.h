// The waist between the network and mpi, rpc, migration: messages between ranks wherever they are,
// messages and large copies between nodes, and the calls that move a rank.
//
// One Transport a node. Sends, receives and probes come from any thread of the node, for ranks that
// are here; nothing blocks or switches. poll() and the sleep calls come from one thread at a time
// (progress/), at start-up and shutdown from the owner.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/result.h"
#include "base/tunable.h"
#include "net/costs/cost.h"
#include "net/costs/costs_file.h"
#include "net/driver.h"
#include "net/drivers/choice.h"
#include "net/explanation.h"
#include "net/message.h"
#include "net/nodes/rank_table.h"
#include "net/opening/bootstrap.h"

namespace sterna::memory {
struct RankSlot;
}
namespace sterna::progress {
class Progress;
}

namespace sterna::net {

class Absence;
class Gate;
class DirectWay;
class TransportCore;

struct TransportOptions {
  Bootstrap* bootstrap = nullptr;         // Lives longer, as all of these.
  std::span<const DriverChoice> drivers;  // By preference; see choose_drivers.
  Clock* clock = nullptr;                 // Null: the machine's.
  const Log* log = nullptr;               // Null: silent.
  const Settings* settings = nullptr;     // Null: defaults.
  std::string system = "/sys";            // Where the system tells of devices.
};

/// The tunables of src/net itself, for the table of Settings; those of drivers are in their
/// entries.
[[nodiscard]] std::span<const Tunable> transport_tunables() noexcept;

/// The cost model of such a way with these settings, as it is before anything is known of it: of
/// one driver, or of a link of so many rails (link_capabilities()).
[[nodiscard]] Result<CostModel> profile_model(const Capabilities& way, const Settings& settings,
                                              std::size_t link_rails = 0);

/// Called by poll() with a message of another node (or of this one), which is valid until it
/// returns: its head, if that came apart from its body, else all of it as body. May send messages
/// and complete requests; must not block, switch or poll.
using NodeHandler = void (*)(void* context, std::uint32_t from_node,
                             std::span<const std::byte> head,
                             std::span<const std::byte> body) noexcept;
/// Called by poll() or within rank_message(): a note for `rank`, which is on this node.
using RankHandler = void (*)(void* context, std::uint32_t rank, std::uint32_t from_node,
                             std::span<const std::byte> bytes) noexcept;

/// Called by poll() once for each node that is lost, after everything that waited for it has ended.
using LostHandler = void (*)(void* context, std::uint32_t node, std::string_view reason) noexcept;

/// Called when a frame for `rank` was lost because the rank's system heap has no room for what it
/// must note of it: the job cannot go on. By poll() or whoever handed the frame over, without
/// locks; `text` says what to do.
using FullHandler = void (*)(void* context, std::uint32_t rank, const std::string& text) noexcept;

inline constexpr std::uint32_t kHandlerCount = 16;  // Ids 0 .. 15 of each kind.
inline constexpr std::uint64_t kNodeMessageBytesMax = 16 << 20;
inline constexpr std::uint32_t kRankNoteBytesMax = kPacketBytesMin - 64;

/// One large copy to another node. Memory of the caller, until done.
struct BulkSend {
  progress::Completion done;
  Fault fault = Fault::none;
  std::atomic<std::uint64_t> sent_bytes{0};  // By the poller. Relaxed: only looked at for progress.
  std::atomic<bool> is_withdrawn{false};
};

/// A message from `node` for `handler`, whose head is the one word `word`.
struct AwaitedWord {
  std::uint32_t node = 0;
  std::uint32_t handler = 0;
  std::uint64_t word = 0;
  std::span<std::byte> into;  // Where its body goes, as much as fits.
};

/// Where a large copy from another node arrives. Memory of the caller, until done or withdrawn.
struct Landing {
  progress::Completion done;
  Fault fault = Fault::none;
  std::uint64_t id = 0;  // To be told to the sender. Set by expect_bulk.
  std::uint64_t received_bytes = 0;
};

struct TransportStatistics {
  std::uint64_t messages_local = 0, messages_eager = 0, messages_rendezvous = 0;
  std::uint64_t frames_forwarded = 0, frames_malformed = 0, frames_dropped = 0, frames_held = 0;
  std::uint64_t bytes_direct = 0, bytes_data = 0;
  std::uint64_t heads_sent = 0, heads_dropped = 0;  // Dropped: by this receiver.
  std::uint64_t lent_bytes_twice = 0;  // Of lent parts, that came in frames, too: a rail was lost.
  std::uint64_t frames_handed = 0;     // Sent by a worker without work for a thread that computes.
  std::uint64_t messages_invited = 0;  // Written by their sender while the receiver computed.
};

/// One rail of a link (net/rails).
struct RailReport {
  std::string name;               // Of the driver.
  const char* state = "";         // unopened, up, silent, down, ended.
  std::uint64_t ps_per_byte = 0;  // Lately measured, else its profile's.
  std::uint64_t round_trip_ns = 0;
  std::uint64_t packets = 0;  // Sent by it, with those sent again.
  std::uint64_t bytes = 0;
  std::uint64_t sent_again = 0;  // Of the whole link, as the rest.
  std::uint64_t came_twice = 0;
  std::uint64_t corrupt = 0;
};

/// Where a rank is, and after how many moves.
struct RankPlace {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::uint32_t move = 0;
};

class Transport {
 public:
  /// Opens the drivers, and exchanges their addresses where the first one does not reach all nodes
  /// without. Blocks for that exchange.
  [[nodiscard]] static Result<std::unique_ptr<Transport>> open(const TransportOptions& options);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The rails of the link to `node` as they are now; none: it has no link, or that is not in use.
  /// Any thread.
  [[nodiscard]] std::vector<RailReport> rails(std::uint32_t node) const;

  /// When poll() must run again although nothing arrives; kNever: not. Called by the poller.
  [[nodiscard]] std::uint64_t due_ns() const noexcept;

  /// Registers one source a driver, and one for the node itself, with `progress`; remove_from
  /// before either ends.
  void add_to(progress::Progress& progress) noexcept;
  void remove_from(progress::Progress& progress) noexcept;

  [[nodiscard]] const JobMap& job() const noexcept;

  /// True: from now on one kernel thread at a time calls this object and its sources, as a process
  /// does below MPI_THREAD_MULTIPLE; its locks then cost no atomic exchanges. False at first. By a
  /// thread that takes turns with all others, outside of poll().
  void serve_one_caller(bool is_one) noexcept;

  /// For who progresses while the program of a process computes (runtime/background/background.h).
  [[nodiscard]] Absence absence() const noexcept;

  // --- Messages between ranks -----------------------------------------------------------------
  // The Endpoint is that of a rank which is here. A request is not in use when it is given.

  /// Sends `data` from the rank of `from`. The bytes may be reused when request.done.
  void send(Endpoint& from, SendRequest& request, const Target& target, const Buffer& data,
            SendMode mode = SendMode::standard) noexcept;

  void receive(Endpoint& at, RecvRequest& request, const Pattern& pattern,
               const Buffer& data) noexcept;
  void receive(Endpoint& at, RecvRequest& request, const MaskedPattern& pattern,
               const Buffer& data) noexcept;

  /// Whether a message that fits has come; it stays. False, and a `watch`, which is not in use: see
  /// there. Losses that were told of before are not told of again: look at them, then wait.
  [[nodiscard]] bool probe(Endpoint& at, const Pattern& pattern, Envelope& found,
                           MessageWatch* watch = nullptr) noexcept;
  [[nodiscard]] bool probe(Endpoint& at, const MaskedPattern& pattern, Envelope& found,
                           MessageWatch* watch = nullptr) noexcept;

  /// As probe, and takes the message out: only receive_matched gets it. Null: none.
  [[nodiscard]] Message* matched_probe(Endpoint& at, const Pattern& pattern, Envelope& found,
                                       MessageWatch* watch = nullptr) noexcept;
  [[nodiscard]] Message* matched_probe(Endpoint& at, const MaskedPattern& pattern, Envelope& found,
                                       MessageWatch* watch = nullptr) noexcept;
  /// Whoever does not wait any more takes it back: it is not in use then.
  void end_watch(Endpoint& at, MessageWatch& watch) noexcept;
  void receive_matched(Endpoint& at, RecvRequest& request, Message& message,
                       const Buffer& data) noexcept;

  /// True: the receive had no message and has none now; it is done with Fault::cancelled.
  bool cancel_receive(Endpoint& at, RecvRequest& request) noexcept;

  /// A send whose message waits, announced or synchronous, is asked back. True: it will end, with
  /// Fault::cancelled, or, if a receive had the message first, as without. False: too late.
  bool cancel_send(Endpoint& from, SendRequest& request) noexcept;

  /// Whether so many bytes are better sent with a layout than packed, by who awaits their end.
  [[nodiscard]] bool takes_layout(const Endpoint& from, std::uint32_t to_rank,
                                  std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool waits_at_once() const noexcept;  // After a start, by the last ones.

  /// Messages between ranks of one worker, from the code of a rank: direct.h.
  [[nodiscard]] DirectWay& direct_way() const noexcept { return direct_way_; }

  /// Ends the wait of a rank in DirectWay::receive(), if it is there; after slot.move_request has
  /// been changed. From anywhere, not inside a lock.
  void interrupt(std::uint32_t rank) noexcept;

  // A message of one packet, with nothing in between. What is refused has not happened, and send()
  // or receive() does it, in the same order. `bytes` and `into` are one range each. Any thread; of
  // a rank that may move its own.

  /// Sends if the way is free; the bytes may be reused.
  [[nodiscard]] bool try_send_short(Endpoint& from, const Target& target,
                                    std::span<const std::byte> bytes) noexcept;
  /// receive() into `bytes` bytes, of a rank that never moves; it is never refused.
  void receive_run(Endpoint& at, RecvRequest& request, Pattern pattern, std::byte* into,
                   std::uint64_t bytes) noexcept;
  /// Receives a message that comes within a few microseconds, before all others, and fits. With a
  /// place for a `fault` a user thread, of a rank that never moves, may also take those of other
  /// receives and, where that has made their threads runnable, leave the processor to them until
  /// its own has come, which may be late. Switches then.
  [[nodiscard]] bool try_receive_short(Endpoint& at, const Pattern& pattern,
                                       std::span<std::byte> into, Envelope& found,
                                       Fault* fault = nullptr) noexcept;
  /// For who looks often and has found nothing: false: nor would a poll, so that it is not worth
  /// its price. True now and then in any case, and unless one thread calls and all packets come by
  /// one driver that shows them.
  [[nodiscard]] bool may_find_more() noexcept;

  // --- Ranks ----------------------------------------------------------------------------------

  /// The rank is here from now on: at start-up, and after a move (then `endpoint` came with it).
  /// Packets that were held for it are delivered. The rank must be expected.
  void install(std::uint32_t rank, Endpoint* endpoint) noexcept;
  /// The rank takes no more messages: its endpoint can be destroyed afterwards. It is here, or has
  /// begun to leave.
  void remove(std::uint32_t rank) noexcept;

  /// Where the rank is as far as this node knows (for one that is here: this node).
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) noexcept;

  // Moving, at the source: begin, copy its memory, then commit or cancel. From begin on, nothing
  // here touches the rank's memory; what comes for it is held.
  /// Fails with refused, and the reason, while a copy from or to the rank's memory is under way.
  [[nodiscard]] Result<> begin_leave(std::uint32_t rank) noexcept;
  void commit_leave(std::uint32_t rank, std::uint32_t to_node) noexcept;
  void cancel_leave(std::uint32_t rank) noexcept;
  // At the destination: expect before the source may commit, then install or unexpect.
  void expect(std::uint32_t rank) noexcept;
  /// The rank does not come; what came for it goes back to `node`, where it is.
  void unexpect(std::uint32_t rank, std::uint32_t node) noexcept;
  /// Somebody says that the rank, after `move` moves, is on `node`: taken over if it is news.
  void learn(std::uint32_t rank, std::uint32_t node, std::uint32_t move) noexcept;

  // --- Messages and copies between nodes ------------------------------------------------------

  /// Before the first poll.
  void register_node_handler(std::uint32_t id, NodeHandler handler, void* context) noexcept;
  void register_rank_handler(std::uint32_t id, RankHandler handler, void* context) noexcept;
  void register_lost_handler(LostHandler handler, void* context) noexcept;
  void register_full_handler(FullHandler handler, void* context) noexcept;
  /// Whether any node was lost so far. By any thread.
  [[nodiscard]] bool has_lost_nodes() const noexcept;
  /// How many losses of other ranks the rank was told of so far, here or where it was before. Who
  /// waits for anybody notes it before the wait: a change ends the wait, as it ends receives from
  /// anybody. By any thread.
  [[nodiscard]] static std::uint32_t loss_count(const Endpoint& endpoint) noexcept;
  /// The node of `rank` is lost, and all that came from there before has been delivered. By any
  /// thread.
  [[nodiscard]] bool is_rank_lost(std::uint32_t rank) const noexcept;

  /// Ordered and reliable for each pair of nodes; head and body are copied before it returns. A
  /// head of at most 16 bytes mostly comes apart, and makes no packet longer. To this node itself:
  /// delivered by the next poll. Fails with closed: the node is lost. Else, where `followed_by` is
  /// not 0, the caller sends a message of so many bytes to a rank of that node at once: both may go
  /// in one packet.
  [[nodiscard]] Result<> node_message(std::uint32_t to_node, std::uint32_t handler,
                                      std::span<const std::byte> head,
                                      std::span<const std::byte> body = {},
                                      std::uint64_t followed_by = 0) noexcept;

  /// For a handler that has made a thread runnable, which wants what comes next: other packets had
  /// better wait until it has run.
  void end_polls() noexcept;

  /// The same to another node, with a head of 1 to 16 bytes, if it can go at once, in one packet.
  /// False: nothing has happened.
  [[nodiscard]] bool try_node_message(std::uint32_t to_node, std::uint32_t handler,
                                      std::span<const std::byte> head,
                                      std::span<const std::byte> body) noexcept;

  /// Long messages of that node may be copied from its memory to this one's, not in packets.
  [[nodiscard]] bool may_copy_directly(std::uint32_t node) const noexcept;

  // Memory of who asks a node for something and waits for its answer, read by that node itself.
  /// Whether so many bytes, in pieces of at least `shortest`, are better read by that node than
  /// sent. Now and then false in any case: what messages cost is to be known.
  [[nodiscard]] bool are_better_read(std::uint32_t node, std::uint64_t bytes,
                                     std::uint64_t shortest) noexcept;
  /// They are about to be.
  void will_be_read(const void* data, std::uint64_t bytes) noexcept;
  /// Reads what that node has said. Fails: it must send them. Any thread.
  [[nodiscard]] Result<> read_from(std::uint32_t node, std::byte* into, RemotePiece from) noexcept;

  // For who has sent a message that is answered soon, and has the poller's turn from before that
  // (Progress::Turn) until it has asked for the answer.

  /// Whether the answer may be asked for.
  [[nodiscard]] bool may_await_node(std::uint32_t node) noexcept;
  /// Looks for the next message for some microseconds. True: it is the one, and has been taken;
  /// `bytes` of its body. Else nothing has happened, and poll() hands it over.
  [[nodiscard]] bool try_await_node(const AwaitedWord& awaited, std::uint64_t& bytes) noexcept;

  /// A note of at most kRankNoteBytesMax bytes to the node where `to_rank` is: it follows the rank,
  /// is held while it moves, and is not ordered with anything. Any thread, any node.
  void rank_message(std::uint32_t to_rank, std::uint32_t handler,
                    std::span<const std::byte> bytes) noexcept;

  /// `extents` (copied) take the bytes of one bulk_send of `from_node` that names landing.id.
  void expect_bulk(std::uint32_t from_node, std::span<const Extent> extents,
                   Landing& landing) noexcept;
  /// False: it is done, or bytes are arriving at this moment, ask again.
  bool withdraw_bulk(Landing& landing) noexcept;

  /// The ranks that have moved and are elsewhere, as far as this node knows.
  void for_each_moved(FunctionRef<void(const RankPlace&)> visit) noexcept;
  /// `node` has no rank, and says where those are that have left it: from now on nothing for them
  /// is sent there behind the next message to the node, whatever threads are just about to send.
  void retire(std::uint32_t node, std::span<const RankPlace> places) noexcept;
  /// Frames that were about to go to a node which their rank had left, and have gone elsewhere or
  /// (`waiting`) still have to.
  [[nodiscard]] std::uint64_t rerouted_count(bool waiting) const noexcept;
  /// All drivers deliver packets in the order sent.
  [[nodiscard]] bool keeps_order() const noexcept;

  /// Copies `local` to the landing `landing_id` of `to_node`; `remote` (its extents there) lets the
  /// bytes be written directly on the same host; empty: packets. Done when the local memory may be
  /// reused and the landing's end is on its way.
  void bulk_send(std::uint32_t to_node, std::uint64_t landing_id, std::span<const Extent> local,
                 std::span<const RemotePiece> remote, BulkSend& request) noexcept;
  /// No more of it is sent: done soon, with Fault::cancelled unless all of it was under way.
  void withdraw_bulk_send(BulkSend& request) noexcept;

  // --- Progress -------------------------------------------------------------------------------

  /// Handles what has come and sends what waits. Returns how many packets and parts of copies.
  std::uint32_t poll() noexcept;

  /// The launcher says that the process of `node` has ended: tells the drivers; what was to come
  /// from it or go to it ends with Fault::peer_lost, after what did arrive. By the poller.
  void lose_peer(std::uint32_t node, std::string_view reason) noexcept;

  /// Refuses new messages to other nodes; poll until is_drained(), then destroy.
  void close() noexcept;
  [[nodiscard]] bool is_drained() noexcept;

  /// From now on poll() measures what the ways of this node cost that are not known, once they are
  /// in use, beside their messages (sampler.h). Before the first poll; does nothing with the
  /// setting net_cost_sampling=off.
  void sample_costs() noexcept;
  /// Whether the setting wants what earlier jobs have measured.
  [[nodiscard]] bool wants_known_costs() const noexcept;
  /// Takes over what earlier jobs have measured of the ways of this node. Before sample_costs().
  void know_costs(std::span<const CostsEntry> entries, std::uint64_t now_s) noexcept;
  /// What this job has measured, at the first node of each host; else nothing. `at_s` is that of
  /// all. After the last poll.
  [[nodiscard]] std::vector<CostsEntry> sampled_costs(std::uint64_t at_s) const;
  /// A line on each way as it is taken to cost now, and what its driver has counted.
  void log_costs() const;

  [[nodiscard]] TransportStatistics statistics() const noexcept;
  /// What the way to `node`, another one, is taken to cost now.
  [[nodiscard]] CostModel cost(std::uint32_t node) const;
  /// How long a message of `bytes` to the rank is taken to be under way, in nanoseconds; 0: it
  /// stays on this node, or nothing is known of the way.
  [[nodiscard]] std::uint64_t expected_ns(std::uint32_t rank, std::uint64_t bytes) noexcept;
  /// Why a message of `bytes` to `node` goes the way it goes, for `sterna info --why`.
  [[nodiscard]] std::string explain(std::uint32_t node, std::uint64_t bytes);
  /// The same with all that the answer rests on, as it is now; `bytes` at most kExplainedBytesMax.
  /// Any thread.
  [[nodiscard]] WayExplanation explain_way(std::uint32_t node, std::uint64_t bytes);

 private:
  explicit Transport(std::unique_ptr<TransportCore> core) noexcept;
  const std::unique_ptr<TransportCore> core_;
  DirectWay& direct_way_;
};

}  // namespace sterna::net
