// The inside of a Transport: what its parts (send.cc, receive.cc, deliver.cc, transfer.cc, move.cc,
// nodes.cc, lost.cc) share. Only they include it.
//
// Frames between ranks all take one way: transmit() looks the destination up; a rank that is here
// gets the frame on the spot (deliver()), one that moves has it held, else it goes to a gate. What
// a frame or a call makes necessary (answers, transfers) is gathered in an Outcome under the lock
// of the rank, and done after it: no lock is held around a driver (but short.cc), no two of ranks.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/spin_lock.h"
#include "memory/large_pages.h"
#include "net/core_options.h"
#include "net/core_parts.h"
#include "net/costs/sampler.h"
#include "net/endpoint.h"
#include "net/matching/direct.h"
#include "net/matching/gate.h"
#include "net/nodes/node_link.h"
#include "net/nodes/rank_table.h"
#include "net/opening/sources.h"
#include "net/outcome.h"
#include "net/packets/packet.h"
#include "net/packets/packet_pool.h"
#include "net/rails/bond.h"
#include "net/transfer/caller_habits.h"
#include "net/transfer/invitations.h"
#include "net/transfer/job.h"
#include "net/transport.h"

namespace sterna::net {

class TransportCore final : private Bond::Owner {
 public:
  TransportCore(const TransportOptions& options, const CoreOptions& core_options);
  ~TransportCore();
  [[nodiscard]] Result<> open_drivers(const TransportOptions& options);

  // send.cc
  void send(Endpoint& from, SendRequest& request, const Target& target, const Buffer& data,
            SendMode mode) noexcept;
  // receive.cc; of a Pattern or a MaskedPattern.
  template <typename Wanted>
  void receive(Endpoint& at, RecvRequest& request, const Wanted& wanted,
               const Buffer& data) noexcept;
  void receive_matched(Endpoint& at, RecvRequest& request, Message& message,
                       const Buffer& data) noexcept;
  // probe.cc, cancel.cc
  template <typename Wanted>
  bool look_for(Endpoint& at, const Wanted& wanted, Message** taken, Envelope& found,
                MessageWatch* watch) noexcept;
  bool cancel_receive(Endpoint& at, RecvRequest& request) noexcept;
  bool cancel_send(Endpoint& from, SendRequest& request) noexcept;
  // direct.cc, short.cc
  void interrupt(std::uint32_t rank) noexcept;
  bool try_send_short(Endpoint& from, const Target& to, std::span<const std::byte> bytes) noexcept;
  void receive_run(Endpoint& at, RecvRequest& request, Pattern pattern, std::byte* into,
                   std::uint64_t bytes) noexcept;
  bool try_receive_short(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                         Envelope& found, Fault* fault) noexcept;
  bool may_find_more() noexcept;
  // move.cc
  void install(std::uint32_t rank, Endpoint* endpoint) noexcept;
  void remove(std::uint32_t rank) noexcept;
  Result<> begin_leave(std::uint32_t rank) noexcept;
  void commit_leave(std::uint32_t rank, std::uint32_t to_node) noexcept;
  void cancel_leave(std::uint32_t rank) noexcept;
  void expect(std::uint32_t rank) noexcept;
  void learn(std::uint32_t rank, std::uint32_t node, std::uint32_t move) noexcept;
  void unexpect(std::uint32_t rank, std::uint32_t node) noexcept;
  void for_each_moved(FunctionRef<void(const RankPlace&)> visit) noexcept;
  void retire(std::uint32_t node, std::span<const RankPlace> places) noexcept;
  bool may_await_node(std::uint32_t node) noexcept;  // node_short.cc, nodes.cc, bulk.cc
  bool try_await_node(const AwaitedWord& awaited, std::uint64_t& bytes) noexcept;
  bool accept_whole(std::uint32_t from_node, Packet packet) noexcept;
  Result<> node_message(std::uint32_t to_node, std::uint32_t handler,
                        std::span<const std::byte> head, std::span<const std::byte> body,
                        std::uint64_t followed_by) noexcept;
  void rank_message(std::uint32_t to_rank, std::uint32_t handler,
                    std::span<const std::byte> bytes) noexcept;
  void expect_bulk(std::uint32_t from_node, std::span<const Extent> extents,
                   Landing& landing) noexcept;
  bool withdraw_bulk(Landing& landing) noexcept;
  void bulk_send(std::uint32_t to_node, std::uint64_t landing_id, std::span<const Extent> local,
                 std::span<const RemotePiece> remote, BulkSend& request) noexcept;
  void serve_one_caller(bool is_one) noexcept;  // core.cc
  [[nodiscard]] std::atomic<std::uint32_t>* absence_flag() const noexcept;
  [[nodiscard]] bool rings_absent() const noexcept;
  [[nodiscard]] bool has_open(const Endpoint& endpoint) const noexcept;
  /// Wakes who progresses, at nodes that `driver` reaches, in the place of a program that computes.
  bool wake_absent(Driver& driver, bool is_long) noexcept;
  std::uint32_t poll() noexcept;
  std::uint32_t poll_inner() noexcept;
  [[nodiscard]] bool has_inner_work() noexcept;
  [[nodiscard]] bool has_next_step() noexcept;
  [[nodiscard]] bool has_work() noexcept;
  [[nodiscard]] bool may_have_inner() noexcept;  // poll_inner() might do something.
  [[nodiscard]] bool is_quiet() noexcept;
  [[nodiscard]] bool is_drained() noexcept;
  void on_packet(std::uint16_t rail, std::uint32_t from_node, Packet packet) noexcept;
  void accept_packet(std::uint32_t from_node, Packet packet) noexcept;
  // placed.cc, lost.cc
  std::span<std::byte> place(std::uint32_t from_node, Packet head, std::uint32_t bytes) noexcept;
  void on_placed(std::uint32_t from_node, Packet head, std::uint32_t bytes) noexcept;
  std::span<std::byte> hold_place(LentParts::Way by, Packet head, std::uint32_t bytes) noexcept;
  void end_held(std::uint32_t from_node, Packet head, std::uint32_t bytes, bool is_whole) noexcept;
  void on_rail_lost(std::uint16_t rail, std::uint32_t node, std::string_view reason) noexcept;

 private:
  friend class Absence;
  friend class Transport;
  friend class DirectWay;
  friend class Rail;
  friend class InnerSource;
  void bind_rails(const DriverOptions& given, const std::string& system);
  [[nodiscard]] Result<> exchange_addresses(Bootstrap& bootstrap);
  [[nodiscard]] Result<> open_gates();
  void open_bond();
  [[nodiscard]] bool open_gate(std::uint32_t node, const GateShared& shared);
  void lose_node(std::uint32_t node, std::string_view reason) noexcept;
  void on_link_lost(std::uint32_t node, std::string_view why) noexcept override;

  // --- Frames (deliver.cc) --------------------------------------------------------------------
  /// Routes a frame to its destination rank: header, then [offset, offset + payload_bytes) of
  /// `payload`. False: the node of the rank is lost.
  bool transmit(const FrameHeader& header, const Buffer& payload, std::uint64_t offset = 0,
                Sender sender = Sender::waits) noexcept;
  /// A frame to a rank; `from_node` handed it to us (this node: it starts here).
  void deliver(std::uint32_t from_node, const Frame& frame) noexcept;
  Gate::SendResult send_frame(std::uint32_t node, const FrameHeader& header, const Buffer& payload,
                              std::uint64_t offset, std::uint32_t route_version,
                              Sender sender = Sender::waits) noexcept;
  bool transmit_two(FrameHeader& header, const Buffer& data, std::uint64_t offset,
                    std::uint32_t frame_bytes, bool& is_sent) noexcept;
  static void send_handed(void* core) noexcept;  // What threads have left to an idle worker.
  /// To a node, whoever is on it. False: it is lost.
  bool send_to_node(std::uint32_t node, const FrameHeader& header, const Buffer& payload,
                    Sender sender = Sender::waits) noexcept;
  static void on_stale(void* core, HeldPacket* packet) noexcept;
  static void on_bad_choice(void* core, const char* rule) noexcept;
  static void wake_sleeper(void* core) noexcept { static_cast<TransportCore*>(core)->wake(); }
  std::uint32_t send_stale() noexcept;
  void hold(RankEntry& entry, std::uint32_t from_node, const Frame& frame) noexcept
      STERNA_REQUIRES(entry.lock);
  void deliver_held(HeldPacket* first) noexcept;
  void deliver_early(std::uint32_t rank) noexcept;  // What a move has interrupted: move.cc.
  void forward(std::uint32_t from_node, const Frame& frame, std::uint32_t to_node,
               std::uint32_t epoch) noexcept;
  void accept(RankEntry& entry, Endpoint& at, const Frame& frame, Outcome& outcome) noexcept
      STERNA_REQUIRES(entry.lock);
  void accept_in_turn(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                      Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void accept_announced(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                        Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void accept_answer(RankEntry& entry, Endpoint& at, const Frame& frame, Outcome& outcome) noexcept
      STERNA_REQUIRES(entry.lock);
  void take_data(RankEntry& entry, Endpoint& at, RecvRequest& request, std::uint64_t bytes) noexcept
      STERNA_REQUIRES(entry.lock);
  void act(std::uint32_t rank, Outcome& outcome) noexcept;  // Sends the answers, starts transfers.
  void fail_cleared(std::uint32_t rank, const Outcome::Answer& answer) noexcept;
  void refuse(const FrameHeader& header, const char* why) noexcept;
  void report_lost(std::uint32_t rank, Outcome::Lost why) noexcept;

  // --- Messages at their receiver (receive.cc); all of them under the lock of the rank ---------
  void accept_eager(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                    Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void accept_more(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                   Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void withdraw(Endpoint& at, const FrameHeader& header, Outcome& outcome) noexcept;
  enum class Announced : std::uint8_t { taken, no_room, no_memory };
  Announced accept_rendezvous(RankEntry& entry, Endpoint& at, Peer* peer, const Frame& frame,
                              Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void release(Endpoint& at, const Message& message, Outcome& outcome) noexcept;
  template <typename Wanted>
  void match_or_post(Endpoint& at, RecvRequest& request, const Wanted& wanted) noexcept;
  void match(RankEntry& entry, Endpoint& at, RecvRequest& request, Message& message,
             Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void clear_to_send(RankEntry& entry, Endpoint& at, RecvRequest& request, const Message& announced,
                     bool is_waited, Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void fail_matched(Endpoint& at, RecvRequest& request, Message& found, Outcome& outcome) noexcept;
  void consume(Endpoint& at, Peer& peer, std::uint64_t bytes, Outcome& outcome) noexcept;
  void start_rendezvous(RankEntry& entry, Endpoint& at, RecvRequest& request,
                        const Message& message, bool is_waited, Outcome& outcome) noexcept
      STERNA_REQUIRES(entry.lock);
  void answer_matched(Endpoint& at, std::uint32_t source, std::uint64_t send_id, Outcome& outcome,
                      std::uint64_t read_ns = 0) noexcept;
  void finish_receive(RankEntry& entry, Endpoint& at, RecvRequest& request, Fault fault) noexcept
      STERNA_REQUIRES(entry.lock);
  void end_if_lost(Endpoint& at, RecvRequest& request, const Pattern& pattern) noexcept;

  // --- Messages that their sender keeps (kept.cc, released.cc); all but three with its rank's lock
  bool keep_back(Endpoint& from, Peer& peer, SendRequest& request) noexcept;
  void announce_kept(Endpoint& from, std::uint64_t id, std::uint32_t to_rank) noexcept;
  void advance_kept(std::uint32_t rank) noexcept;
  bool release_next(std::uint32_t rank) noexcept;
  void transmit_later(const FrameHeader& header) noexcept;
  void accept_seek(Endpoint& at, Peer& peer, const FrameHeader& header, Outcome& outcome) noexcept;
  void accept_claim(Endpoint& at, Peer& peer, const FrameHeader& header, Outcome& outcome) noexcept;
  bool withdraw_kept(Endpoint& from, SendRequest& request, std::uint64_t id,
                     FrameHeader& header) noexcept;
  bool accept_kept(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                   Outcome& outcome) noexcept STERNA_REQUIRES(entry.lock);
  void accept_nothing(Endpoint& at, Peer& peer, const FrameHeader& header,
                      Outcome& outcome) noexcept;
  void accept_kept_withdrawal(Endpoint& at, Peer& peer, const FrameHeader& header,
                              Outcome& outcome) noexcept;
  template <typename Wanted>
  Hold* look_elsewhere(Endpoint& at, const Wanted& wanted) noexcept;

  // --- Receives that their senders write (invited.cc) -----------------------------------------
  bool may_be_invited(const Endpoint& at, const RecvRequest& request) noexcept;
  bool end_invitation(Endpoint& at, RecvRequest& request, const Pattern& exact,
                      std::uint32_t sequence_after) noexcept;
  void leave_to_writer(RankEntry& entry, Endpoint& at, RecvRequest& request,
                       const Pattern& exact) noexcept STERNA_REQUIRES(entry.lock);
  RecvRequest* take_written(RankEntry& entry, Endpoint& at, RecvRequest& request, Pattern exact,
                            std::uint32_t sequence_after) noexcept STERNA_REQUIRES(entry.lock);
  RecvRequest* take_posted(RankEntry& entry, Endpoint& at, Pattern exact,
                           std::uint32_t sequence_after) noexcept STERNA_REQUIRES(entry.lock);
  [[nodiscard]] bool is_waited_for() const noexcept;
  [[nodiscard]] Channel* channel_to(std::uint32_t rank) noexcept;
  bool leave_to_who_waits(RankEntry& entry, Endpoint& at, RecvRequest& request,
                          const Message& announced, bool is_waited) noexcept
      STERNA_REQUIRES(entry.lock);
  std::uint32_t read_left() noexcept;
  bool take_invitation(Endpoint& from, Outcome& outcome) noexcept;
  std::uint32_t write_invited() noexcept;

  // --- Messages at their sender (send.cc) ------------------------------------------------------
  [[nodiscard]] bool is_left(const SendRequest& request, std::uint32_t to_rank) noexcept;
  bool send_local(Endpoint& from, SendRequest& request) noexcept;
  HandOver hand_over(RankEntry& entry, Endpoint& to, std::uint32_t from_rank, SendRequest& request,
                     RecvRequest*& receive) noexcept STERNA_REQUIRES(entry.lock);
  bool announce_local(Endpoint& from, SendRequest& request) noexcept;
  void send_remote(Endpoint& from, SendRequest& request, std::uint32_t node) noexcept;
  void tell_announced(Endpoint& from, std::uint64_t id, std::uint32_t peer,
                      std::uint32_t sequence) noexcept;
  void end_pending_send(Endpoint& from, std::uint64_t id, std::uint32_t peer, Fault fault) noexcept;
  bool take_back(std::uint32_t from, std::uint32_t to, std::uint64_t id, bool& is_here) noexcept;
  void deliver_now(std::uint32_t rank, RecvRequest& receive, SendRequest& request) noexcept;
  [[nodiscard]] bool is_caught_up(const Endpoint& from, std::uint32_t to_rank,
                                  std::uint32_t& sequence, bool& is_kept) noexcept;

  // --- Heads of announced messages (head.cc) ---------------------------------------------------
  [[nodiscard]] bool is_left_whole(const Gate& gate, std::uint64_t bytes) const noexcept;
  std::uint32_t head_bytes_of(const Endpoint& from, const SendRequest& request, const Peer& peer,
                              Gate& gate) const noexcept;
  bool goes_unannounced(const Endpoint& from, const SendRequest& request, const Peer& peer,
                        Gate& gate) const noexcept;
  std::size_t send_at_once(const FrameHeader& first, const Buffer& payload, FrameKind next_kind,
                           const Buffer& rest, std::uint32_t frame_bytes) noexcept;
  void accept_head(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame) noexcept
      STERNA_REQUIRES(entry.lock);

  // --- The short way (short.cc, among.cc, plain.h) ---------------------------------------------
  bool send_placed(Channel& by, const Endpoint& from, const Target& target,
                   std::span<const std::byte> bytes, bool& must_ring) noexcept;
  bool is_nothing_left() noexcept;
  bool may_look(const Endpoint& at) noexcept;
  bool count_look() noexcept;
  bool sight_beside(Driver::Sight& seen) noexcept;
  bool receive_beside(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                      Envelope& found) noexcept;
  bool receive_among(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                     Envelope& found, Fault& fault) noexcept;
  template <bool kBesidePosted>
  Taken take_seen(RankEntry& entry, Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                  Packet packet, Envelope& found) noexcept STERNA_REQUIRES(entry.lock);
  bool accept_plain(Packet packet) noexcept;  // From poll(): whole, for a receive that waits.
  template <bool kSerial>
  bool accept_plain_here(Packet packet) noexcept;

  // --- Transfers (transfer.cc) -----------------------------------------------------------------
  void start_transfer(std::uint32_t rank, Outcome& outcome) noexcept;
  void read_remote(std::uint32_t rank, Outcome& outcome) noexcept;
  [[nodiscard]] ReadState read_part(Gate& gate, const RecvRequest& request, std::uint64_t address,
                                    std::uint64_t offset, std::uint64_t bytes,
                                    std::uint64_t* took_ns) noexcept;
  bool step_read(TransferJob& job) noexcept;
  void end_read(const TransferJob& job, Fault fault) noexcept;
  void finish_read(std::uint32_t rank, RecvRequest& request, std::uint64_t send_id,
                   std::uint64_t read_bytes, std::uint64_t took_ns) noexcept;
  void learn_read(const FrameHeader& matched, std::uint64_t bytes) noexcept;
  void copy_local(std::uint32_t rank, std::uint32_t to_rank, SendRequest& send,
                  std::uint64_t receive_id) noexcept;
  void submit(TransferJob* job) noexcept;
  std::uint32_t advance_jobs() noexcept;
  std::uint32_t send_together() noexcept;  // together.cc
  std::size_t send_some_together(std::size_t first, std::uint32_t& count) noexcept;
  void take_in(TransferJob* job) noexcept;
  [[nodiscard]] bool waits_for_others(std::size_t index) const noexcept;
  bool step(TransferJob& job) noexcept;  // True: it has ended.
  bool step_direct(TransferJob& job, Channel& channel) noexcept;
  bool step_frames(TransferJob& job) noexcept;
  /// Up to `end`, as far as there is room; closed: the peer is gone.
  SendState send_frames(TransferJob& job, std::uint64_t& offset, std::uint64_t end,
                        std::uint64_t payload_max) noexcept;
  SendState send_measured(Gate& gate, std::span<const Piece> frame, std::uint64_t bytes) noexcept;
  [[nodiscard]] FrameCut cut_of(const TransferJob& job) const noexcept;
  bool begin_loans(TransferJob& job) noexcept;
  bool step_loans(TransferJob& job) noexcept;
  void lend_parts(TransferJob& job) noexcept;
  SendState send_returned(TransferJob& job) noexcept;
  [[nodiscard]] RecvRequest* find_placeable(RankEntry& entry, const FrameHeader& header,
                                            std::span<std::byte>& place) noexcept
      STERNA_REQUIRES(entry.lock);
  void end_job(TransferJob* job, Fault fault) noexcept;
  void end_send(std::uint32_t rank, SendRequest& send, Fault fault) noexcept;

  // --- Frames between nodes (nodes.cc, bulk.cc) ------------------------------------------------
  bool try_node_short(const NodeMessage& message) noexcept;
  bool accept_wordless(NodeLink& link, std::uint32_t from, Packet packet) noexcept;
  void accept_node_frame(std::uint32_t from_node, const Frame& frame) noexcept;
  void accept_node_part(std::uint32_t from_node, NodeLink& link, const Frame& frame) noexcept;
  void accept_bulk(std::uint32_t from_node, const Frame& frame) noexcept;
  void fail_landings(std::uint32_t node) noexcept;
  std::uint32_t deliver_own() noexcept;
  void call_note(const Frame& frame) noexcept;
  void wake() noexcept;
  void fail_requests(RankEntry& entry, const std::vector<bool>& is_lost) noexcept;  // lost.cc
  void lose_ranks(const std::vector<bool>& is_lost) noexcept;
  void see_losses(std::uint32_t rank) noexcept;
  void see_place(std::uint32_t rank) noexcept;

  const JobMap& job_;
  const std::uint32_t node_;
  const FrameLimits limits_;
  const CoreOptions options_;
  MonotonicClock own_clock_;
  Clock& clock_;
  const Logger log_;
  std::uint32_t frame_payload_max_ = 0;  // Constant after open_drivers.
  // See Absence::leave_reads(), poll_in_place() and leave_copies(). The one caller's.
  bool are_reads_left_ = false, is_in_place_ = false, are_copies_left_ = false;
  std::uint32_t polls_of_look_ = 0;     // The poller's: see write_invited().
  bool is_left_alone_ = false;          // Nobody waits for a long message that was left.
  bool is_serial_ = false;              // See Transport::serve_one_caller().
  Driver* looked_at_ = nullptr;         // Null: no driver has a short way. Constant once open.
  std::uint32_t looks_max_ = 256;       // For a message that has not come: some microseconds.
  const bool* has_company_ = nullptr;   // Of the one caller: then one look. Null: it has none.
  std::uint32_t looks_since_poll_ = 0;  // The poller's, or the one caller's.
  CallerHabits habits_;                 // The one caller's.

  RankTable ranks_;
  PacketPool pool_;
  std::atomic<std::uint32_t> waiting_gates_{0};
  std::vector<std::vector<std::vector<std::byte>>> addresses_;  // By driver, by node. Constant.
  std::vector<DriverChoice> choices_;         // By rail; rails point into it. Constant.
  std::vector<std::unique_ptr<Rail>> rails_;  // Constant after open_drivers.
  std::vector<std::string> driver_names_;     // By rail, the same.
  std::unique_ptr<Bond> bond_;                // The same; null: there is no link.
  InnerSource inner_{*this};
  std::unique_ptr<Gate[]> gates_;  // By node.
  std::unique_ptr<NodeLink[]> links_;
  CostSampler sampler_{job_, gates_.get(), clock_, log_};  // The poller's.
  std::atomic<progress::Progress*> progress_{nullptr};
  std::atomic<threads::HandOver*> hand_over_{nullptr};  // Of that, unless net_offload=off.
  SideWork side_work_;  // Pieces that threads offer to those workers.
  std::atomic<bool> is_any_lost_{false};
  std::atomic<std::uint32_t> loss_count_{0};     // Nodes with ranks. The poller counts.
  std::vector<bool> is_node_lost_;               // lose_node() has been there. The poller's.
  std::atomic<bool> is_choice_told_{false};      // A strategy's broken rule was reported.
  std::atomic<bool> is_closing_{false};          // By the owner; the poller acts on it.
  std::atomic<bool> are_drivers_closed_{false};  // By the poller.

  Invitations invitations_;          // See there.
  MpscQueue<TransferJob> new_jobs_;  // Consumer: the poller.
  std::vector<TransferJob*> jobs_;   // The poller only. By priority, but for take_in().
  std::atomic<std::uint32_t> lending_jobs_{0}, sending_jobs_{0};  // Lent; sent. As job_count_.
  std::size_t urgent_jobs_ = 0;  // The poller only: of jobs_, with a priority.
  std::atomic<std::uint32_t> job_count_{0};
  std::uint32_t packets_until_measure_ = 1, frames_until_measure_ = 1;  // The poller only.
  MpscQueue<HeldPacket> own_messages_;  // To this node itself. Consumer: the poller.
  // Frames for ranks that had left. Consumer: the poller. Counted from their coming to their going.
  MpscQueue<HeldPacket> stale_frames_;
  std::atomic<std::uint64_t> stale_count_{0}, stale_sent_{0};  // The second by the poller.

  SpinLock landings_lock_;
  std::map<std::uint64_t, LandingState> landings_ STERNA_GUARDED_BY(landings_lock_);
  std::uint64_t next_landing_ STERNA_GUARDED_BY(landings_lock_) = 1;

  std::array<CoreHandler, kHandlerCount> handlers_;  // Constant once polled.
  LostHandler lost_handler_ = nullptr;               // Constant once polled.
  void* lost_context_ = nullptr;
  FullHandler full_handler_ = nullptr;  // Constant once polled.
  void* full_context_ = nullptr;
  KeptCount kept_;  // Of the drivers and gates.
  std::unique_ptr<memory::LargePages> large_pages_;  // Null: they are not wanted.
  Counters counters_;
  DirectWay direct_way_{*this, ranks_, is_any_lost_, counters_.local.value};
};

}  // namespace sterna::net
