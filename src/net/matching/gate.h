// A peer node as this node sees it: the rail that reaches it, and the frames that wait for that
// rail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/annotate.h"
#include "base/mpsc_queue.h"
#include "base/spin_lock.h"
#include "net/costs/both_ways.h"
#include "net/costs/direct_thresholds.h"
#include "net/costs/cost.h"
#include "net/costs/eager_trials.h"
#include "net/costs/round_trip.h"
#include "net/costs/trials.h"
#include "net/driver.h"
#include "net/matching/gate_shared.h"
#include "net/packets/packet_pool.h"
#include "net/packets/priority.h"
#include "net/packets/strategy.h"
#include "net/rails/plan.h"
#include "net/transfer/head_habit.h"
#include "net/transfer/stay_habit.h"
#include "net/way_learner.h"

namespace sterna::net {

/// A thread that sends takes the gate if it is free and nothing waits, and sends directly. Else it
/// hands the frame over, and whoever owns the gate sends it before, or just after, letting go. So
/// nobody waits for a gate, and no lock is held around the driver.
class alignas(kCacheLineBytes) Gate {
 public:
  Gate() noexcept = default;
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// At start-up. `peer_address` lives as long as the gate. Several rails: `driver` is a Bond.
  void open(std::uint32_t node, Driver& driver, Packet peer_address, const CostModel& cost,
            const GateShared& shared, std::uint32_t rail_count = 1) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return driver_ != nullptr; }

  enum class SendResult : std::uint8_t {
    sent,    // Accepted by the driver.
    queued,  // It waits here.
    handed,  // A worker that has nothing to run sends it.
    lost,    // The peer is lost; the frame is dropped.
    stale,   // Its route was looked up too long ago; nothing happened, look again.
  };
  /// Sends one frame, or keeps a copy of it. `route_version` was read before the route that led
  /// here; kAnyRoute: the frame is for the node itself. Any thread.
  SendResult send(std::span<const Piece> frame, std::uint32_t route_version = kAnyRoute) noexcept;
  /// The same for who has something better to do than to send: leaves that to a worker that is
  /// awake and idle, if there is one and the model says that it gains.
  SendResult send_later(std::span<const Piece> frame, std::uint32_t route_version) noexcept;
  /// Whether it would only send it, so that its caller may in its own way. Any thread.
  [[nodiscard]] bool sends_at_once() noexcept;
  SendResult send(std::span<const Piece> frame, std::uint32_t route_version,
                  Sender sender) noexcept {
    return sender == Sender::waits     ? send(frame, route_version)
           : sender == Sender::goes_on ? send_later(frame, route_version)
                                       : send_followed(frame, route_version);
  }
  /// A short frame, behind which the caller sends another one at once, whatever happens: where it
  /// is each call of the channel that costs, both go in one.
  SendResult send_followed(std::span<const Piece> frame, std::uint32_t route_version) noexcept;
  /// Nothing waits but a frame that send_followed() has left. A hint while others send.
  [[nodiscard]] bool holds_followed_only() const noexcept {
    // Relaxed: as is_empty().
    return has_followed_.load(std::memory_order_relaxed) &&
           pending_count_.load(std::memory_order_relaxed) == 1 && inbox_.looks_empty();
  }
  /// Frames of one message, kFramesAtOnceMax at most, in one call of the channel, with a single one
  /// that waits before them; only where it is each call that costs. Returns how many of them have
  /// gone.
  [[nodiscard]] std::size_t try_send_at_once(std::span<const std::span<const Piece>> frames,
                                             std::uint32_t route_version) noexcept;
  static constexpr std::size_t kFramesAtOnceMax = 5;
  [[nodiscard]] bool gains_by_several() const noexcept;  // It is so there. Any thread.

  /// Two frames of a message that goes over several rails: where another worker is idle and the
  /// model says that it gains, they leave at once by two rails, and each worker copies and sends
  /// one. False: nothing has happened, they go one after the other. Any thread; `first` and
  /// `second` stay until it returns.
  struct TwoResults {
    SendResult results[2];
    bool was_beside;  // The second was sent by another worker.
  };
  [[nodiscard]] bool try_send_two(std::span<const Piece> first, std::span<const Piece> second,
                                  std::uint32_t route_version, TwoResults& two) noexcept;
  [[nodiscard]] bool has_several_rails() const noexcept { return rail_count_ > 1; }
  [[nodiscard]] std::uint32_t rail_count() const noexcept { return rail_count_; }

  /// Counts how often all ranks have left the peer. Any thread.
  [[nodiscard]] std::uint32_t route_version() const noexcept {
    return route_version_.load(std::memory_order_acquire);  // Pairs with B in retire_routes().
  }
  /// All ranks have left the peer, and the caller has written where they are now: no frame with a
  /// route from before is sent behind what the caller sends next. Any thread.
  ///
  /// B: releases the new routes. Who owns the gate before the caller's next send owns it, sends its
  /// frame before that one; who owns it after, or pushes into the inbox behind it, or takes a frame
  /// out of there, does so after B (through is_owned_, or the push) and sees the new version.
  void retire_routes() noexcept { route_version_.fetch_add(1, std::memory_order_acq_rel); }

  /// Sends one frame, for which no other order matters, only if it can go now; before what waits
  /// only if that has gone first some times. Any thread.
  [[nodiscard]] SendState try_send(std::span<const Piece> frame) noexcept {
    SendState state;
    (void)try_send({&frame, 1}, state);
    return state;
  }
  /// Several such frames, each a packet: Channel::try_send_several().
  std::size_t try_send(std::span<const std::span<const Piece>> frames, SendState& state) noexcept;

  /// For the one caller of a process (Transport::serve_one_caller), outside of a send: the channel,
  /// if it stands and nothing waits for it; else null.
  [[nodiscard]] Channel* idle_channel() const noexcept {
    const bool is_idle = !is_owned_.load(std::memory_order_relaxed) && pending_.first == nullptr &&
                         inbox_.looks_empty() && !is_lost_.load(std::memory_order_relaxed);
    return is_idle ? channel_.load(std::memory_order_relaxed) : nullptr;
  }

  /// For its life the caller may have the gate: a send in parts, for any thread. Routes as in
  /// send().
  class Turn {
   public:
    Turn(Gate& gate, std::uint32_t route_version) noexcept
        : gate_{gate},
          is_owner_{!gate.is_lost() && gate.try_own()},
          is_usable_{is_owner_ && !gate.is_stale(route_version)} {}
    ~Turn() {
      if (is_owner_) {
        gate_.let_go();
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// If it stands and nothing waits for it; else, or if another thread has the gate, null.
    [[nodiscard]] Channel* idle_channel() const noexcept {
      return is_usable_ && gate_.pending_.first == nullptr && gate_.inbox_.looks_empty()
                 ? gate_.channel_.load(std::memory_order_relaxed)
                 : nullptr;
    }

   private:
    Gate& gate_;
    const bool is_owner_;
    const bool is_usable_;
  };

  /// Sends what waits, as far as there is room. Any thread; poll() calls it. Returns how many
  /// packets went.
  std::uint32_t advance() noexcept;

  /// Something was sent, or a direct copy tried. Any thread.
  [[nodiscard]] bool has_channel() const noexcept {
    return channel_.load(std::memory_order_relaxed) != nullptr;
  }
  /// The channel, opened if it was not; null: the gate is lost, or another thread has the gate.
  [[nodiscard]] Channel* channel() noexcept;
  /// The channel if it is open; else null.
  [[nodiscard]] Channel* open_channel() const noexcept {
    return channel_.load(std::memory_order_acquire);
  }

  /// Nothing will be sent any more, and what waits is dropped.
  void lose() noexcept;
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }
  /// No frame waits. A hint while others send.
  [[nodiscard]] bool is_empty() const noexcept;

  /// Its driver can copy directly; whether it may is known when it tries.
  [[nodiscard]] bool is_direct() const noexcept {
    return is_open() && driver_->capabilities().direct_mb_per_s != 0;
  }
  [[nodiscard]] Driver* driver() const noexcept { return driver_; }
  [[nodiscard]] std::uint32_t packet_bytes_max() const noexcept { return packet_bytes_max_; }
  /// Of a message of so many bytes that goes at once, how many go in one frame, `most` at most:
  /// over several rails it is cut for all of them (paper 004, fig. 10).
  [[nodiscard]] std::uint32_t frame_bytes(std::uint64_t bytes, std::uint32_t most) const noexcept {
    if (rail_count_ < 2) [[likely]] {
      return most;
    }
    return cut_.load().packet_bytes(bytes, most);
  }
  /// Over several rails such a message is cut into its parts once: a head would go by one of them
  /// alone, and the rest is no more even than its parts. Longer ones have packets enough.
  [[nodiscard]] bool is_a_part_a_rail(std::uint64_t bytes) const noexcept {
    const Cut cut = cut_.load();
    return rail_count_ > 1 &&
           bytes <= std::uint64_t{cut.parts} * std::min(packet_bytes_max_, cut.part_bytes_max);
  }
  /// How messages are cut for several rails, as far as is known. Any thread.
  void take_cut(const Cut& cut) noexcept { cut_.store(cut); }
  /// Messages of at most so many bytes go eagerly.
  [[nodiscard]] std::uint64_t eager_bytes() const noexcept {
    return eager_bytes_.load(std::memory_order_relaxed);  // A threshold orders nothing.
  }
  /// The same of messages that their sender does not wait for, and the receiver may read.
  [[nodiscard]] std::uint64_t unawaited_eager_bytes() const noexcept {
    return unawaited_eager_bytes_.load(std::memory_order_relaxed);  // As eager_bytes().
  }
  /// And of those whose sender computes meanwhile.
  [[nodiscard]] std::uint64_t computing_eager_bytes() const noexcept {
    return computing_eager_bytes_.load(std::memory_order_relaxed);  // As eager_bytes().
  }

  /// Announced messages of at least so many are copied directly, others go in packets.
  [[nodiscard]] std::uint64_t direct_from_bytes() const noexcept {
    return direct_from_bytes_.load(std::memory_order_relaxed);  // As eager_bytes().
  }
  [[nodiscard]] const DirectThresholds& direct_thresholds() const noexcept {
    return direct_thresholds_;
  }
  /// Whether the next announced message, of so many bytes, goes the way that is not chosen: see
  /// Trials. Any thread: two that ask at once may count as one.
  [[nodiscard]] bool tries_other_way(std::uint64_t bytes) noexcept {
    const std::uint64_t until = until_trial_.load(std::memory_order_relaxed);  // As eager_bytes().
    if (until > bytes) [[likely]] {
      until_trial_.store(until - bytes, std::memory_order_relaxed);
      return false;
    }
    return is_trial(bytes);
  }

  /// Any thread, both.
  [[nodiscard]] EagerTrials& eager_trials() noexcept { return eager_trials_; }
  [[nodiscard]] Lessons& lessons() noexcept { return lessons_; }

  /// So many bytes of a message fit the way while its announcement is answered.
  [[nodiscard]] std::uint64_t head_bytes() const noexcept {
    return head_bytes_.load(std::memory_order_relaxed);  // As eager_bytes().
  }
  /// Of announced messages. Any thread.
  [[nodiscard]] HeadHabit& heads() noexcept { return heads_; }
  /// Whether a head may be the whole message; not over several rails, of which it takes one.
  [[nodiscard]] bool takes_whole_head() const noexcept {
    return rail_count_ == 1 && heads_.are_sure();
  }

  /// A long message begins to be received from the peer, or to be sent there: see BothWays.
  void receives_long(bool has_sent) noexcept { tell_both_ways(both_ways_.receives(has_sent)); }
  void sends_long() noexcept { tell_both_ways(both_ways_.sends()); }
  [[nodiscard]] bool only_receives() const noexcept { return both_ways_.only_receives(); }

  /// Of the peer's program. The owner only.
  [[nodiscard]] StayHabit& stay_habit() noexcept { return stay_habit_; }

  /// What has been measured on the way to or from the peer: see CostModel. Any thread.
  void measured_direct(std::uint64_t bytes, std::uint64_t ns) noexcept {
    change_cost([&](CostModel& cost) { cost.measured_direct(bytes, ns); });
  }
  /// One packet of `each` of a stream, or with 1 a whole message, was filled in `ns`; see
  /// Trials::is_warm().
  void measured_filling(std::uint64_t bytes, std::uint64_t ns, std::uint64_t each) noexcept {
    const SpinGuard guard{cost_lock_};
    if (trials_.is_warm(bytes * each)) {
      cost_->measured_packets(bytes, ns);
      publish_cost();
    }
  }
  void measured_reading(std::uint64_t bytes, std::uint64_t ns, bool is_as_ours) noexcept {
    change_cost([&](CostModel& cost) { cost.measured_reading(bytes, ns, is_as_ours); });
  }
  void told_reading(std::uint64_t ps_per_byte) noexcept {
    change_cost([&](CostModel& cost) { cost.told_reading(ps_per_byte); });
  }
  [[nodiscard]] std::uint64_t own_reading_ps() const noexcept {
    return own_reading_ps_.load(std::memory_order_relaxed);  // As eager_bytes().
  }
  void measured_send(std::uint64_t ns) noexcept {
    change_cost([&](CostModel& cost) { cost.measured_send(ns); });
  }
  void measured_piece(std::uint64_t bytes, std::uint64_t ns) noexcept {
    change_cost([&](CostModel& cost) { cost.measured_piece(bytes, ns); });
  }
  void measured_copy(std::uint64_t bytes, std::uint64_t ns) noexcept {
    change_cost([&](CostModel& cost) { cost.measured_copy(bytes, ns); });
  }
  /// On a way that is not copied directly, else nothing: `rank` is about to announce its send `id`,
  /// and its answer has come, or it will be no measure of the way's latency. Any thread.
  void begin_turn(std::uint32_t rank, std::uint64_t id, std::uint32_t head_bytes) noexcept;
  void end_turn(std::uint32_t rank, std::uint64_t id, bool is_measure) noexcept;
  /// A message that might have a head goes without, so that its turn says what a turn takes.
  [[nodiscard]] bool is_turn_to_be_measured() noexcept {
    return !is_direct() && lessons_.is_turn_next();
  }
  /// A message from there is copied once more: that shall be told to measured_copy(). Any thread.
  [[nodiscard]] bool is_copy_to_be_measured() noexcept;
  void lose_direct() noexcept {
    change_cost([](CostModel& cost) { cost.lose_direct(); });
  }
  void take_costs(const WayCosts& costs, CostOrigin origin) noexcept {
    change_cost([&](CostModel& cost) { cost.take(costs, origin); });
  }
  [[nodiscard]] std::string explain(std::uint64_t bytes) const;
  /// From which length on announced messages are lent; CostModel::kNever: not over this way.
  [[nodiscard]] std::uint64_t lent_from_bytes() const noexcept;
  /// What packets have taught. For who owns the gate, or when nobody sends any more.
  [[nodiscard]] const WayLearner& learner() const noexcept { return learner_; }
  /// The model as it is now. Any thread; the gate is open.
  [[nodiscard]] CostModel cost() const noexcept {
    const SpinGuard guard{cost_lock_};
    return *cost_;
  }

 private:
  [[nodiscard]] bool is_trial(std::uint64_t bytes) noexcept;
  void tell_both_ways(bool has_changed) noexcept {
    if (has_changed) [[unlikely]] {
      change_cost([&](CostModel& cost) { cost.set_both_ways(both_ways_.share()); });
    }
  }
  [[nodiscard]] bool try_own() noexcept;
  void let_go() noexcept;
  void push(std::span<const Piece> frame, std::uint32_t route_version) noexcept;
  [[nodiscard]] threads::HandOver* taker() const noexcept;
  [[nodiscard]] bool is_to_be_measured() noexcept;
  SendResult send_measured(std::span<const Piece> frame, std::uint32_t route_version) noexcept;
  // The rest is called by the owner.
  [[nodiscard]] Channel* connected() noexcept;
  void drain_for_others() noexcept;
  std::uint32_t drain() noexcept;
  [[nodiscard]] bool send_behind(std::span<const Piece> frame) noexcept;
  [[nodiscard]] std::size_t send_with_waiting(
      Channel& channel, std::span<const std::span<const Piece>> frames) noexcept;
  [[nodiscard]] PacketLimits limits(bool is_first) const noexcept;
  [[nodiscard]] bool is_stale(std::uint32_t route_version) const noexcept {
    // Relaxed: see retire_routes().
    return route_version != kAnyRoute &&
           route_version != route_version_.load(std::memory_order_relaxed);
  }
  void take_inbox() noexcept;
  void drop_all() noexcept;
  void note_waiting() noexcept;
  void count_waiting(bool is_waiting) noexcept;

  void publish_cost() noexcept STERNA_REQUIRES(cost_lock_);
  template <typename Change>
  void change_cost(Change change) noexcept {
    const SpinGuard guard{cost_lock_};
    change(*cost_);
    publish_cost();
  }

  // Constant after open().
  std::uint32_t node_ = 0;
  std::uint32_t packet_bytes_max_ = 0;
  std::uint32_t rail_count_ = 1;
  Driver* driver_ = nullptr;
  Packet peer_address_;
  GateShared shared_{};

  std::atomic<bool> is_owned_{false};
  std::atomic<bool> is_lost_{false};
  SharedCut cut_;
  std::atomic<std::uint32_t> route_version_{0};
  std::atomic<Channel*> channel_{nullptr};  // Set once, by the owner.
  std::atomic<std::uint64_t> eager_bytes_{0};
  std::atomic<std::uint64_t> unawaited_eager_bytes_{0};
  std::atomic<std::uint64_t> computing_eager_bytes_{0};
  std::atomic<std::uint64_t> direct_from_bytes_{0};
  DirectThresholds direct_thresholds_;
  std::atomic<std::uint64_t> until_trial_{Trials::kBytes};
  std::atomic<std::uint64_t> own_reading_ps_{0};
  std::atomic<std::uint32_t> share_bytes_{0};
  std::atomic<std::uint64_t> head_bytes_{0};
  std::atomic<bool> is_handed_over_{false};          // See CostModel::hands_over().
  std::atomic<std::uint64_t> beside_from_bytes_{0};  // See CostModel::beside_from_bytes().
  std::atomic<std::uint32_t> unmeasured_{0};  // Calls of send_later(), try_send_two(); not exact.
  HeadHabit heads_;
  BothWays both_ways_;
  EagerTrials eager_trials_;
  std::atomic<std::uint32_t> pending_count_{0};  // Written by the owner.
  std::atomic<bool> has_followed_{false};        // The same; only of what still waits.
  MpscQueue<HeldPacket> inbox_;                  // Consumer: the owner.
  WaitingFrames pending_;  // The owner only; older than what is in inbox_, but for priorities.
  StayHabit stay_habit_;           // The owner only.
  std::uint32_t passed_over_ = 0;  // The owner only: see form_packet().
  WayLearner learner_;             // The owner only.
  std::uint32_t refused_ = 0;      // The owner only: try_send() for what waits, in a row.
  bool is_waiting_ = false;        // The owner only: counted in waiting_count.
  mutable SpinLock cost_lock_;
  std::unique_ptr<CostModel> cost_ STERNA_GUARDED_BY(cost_lock_);
  Trials trials_ STERNA_GUARDED_BY(cost_lock_);
  RoundTrip round_trip_ STERNA_GUARDED_BY(cost_lock_);
  Lessons lessons_;
};

}  // namespace sterna::net
