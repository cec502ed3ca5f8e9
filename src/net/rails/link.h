// All rails to one peer as one channel: packets take the rail that the strategy chooses, are
// numbered and kept until the peer has told that they came, and are sent again, by another rail if
// there is one, when a rail loses them, falls silent or breaks. The peer takes each once, in any
// order (what needs an order has it in its frames). Sums find packets whose bytes changed.
//
// Only links with several rails, with a rail that may lose packets, or asked for by net_links = on
// exist (bond.h): else the gate has the driver's own channel and pays nothing.
//
// Two packets may be sent at once, by two rails and two threads: try_send_two().
//
// Two locks. `send_lock_` makes one caller of the rails' channels of the gate's owner, who sends,
// and the poller, who acknowledges and sends again; it is held around Channel::try_send.
// `state_lock_`, inside it or alone, guards all the rest for a few loads and stores. Received bytes
// go up with neither held.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/annotate.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/spin_lock.h"
#include "net/costs/cost.h"
#include "net/driver.h"
#include "net/packets/packet_pool.h"
#include "net/packets/strategy.h"
#include "net/rails/format.h"
#include "net/rails/lent_pace.h"
#include "net/rails/rail_echo.h"
#include "net/rails/rate.h"
#include "net/rails/side_work.h"
#include "net/rails/window.h"
#include "net/transport.h"
#include "threads/hand_over.h"

namespace sterna::net {

struct LinkOptions {
  bool has_sums = false;                        // Put sums; rails without them are not believed.
  std::uint64_t reconnect_ns = 10'000'000'000;  // A peer without a rail counts as alive so long.
  std::uint64_t silence_ns = 10'000'000'000;    // A rail that loses packets is down after it.
};

/// What the links of one node share. Constant once they exist.
struct LinkShared {
  PacketPool* pool = nullptr;
  const Strategy* strategy = nullptr;
  Clock* clock = nullptr;
  const Logger* log = nullptr;
  SumKey key{};
  LinkOptions options{};
  std::atomic<bool>* is_choice_told = nullptr;  // A broken rule of the strategy was reported.
  // Something is due though nobody polls. Any thread.
  void (*wake)(void* core) noexcept = nullptr;
  void* core = nullptr;
};

class Link final : public Channel {
 public:
  struct RailOpening {
    Driver* driver;
    Packet peer_address;
    std::uint16_t index;  // Among the drivers of the job.
    std::string_view name;
  };
  struct Statistics {
    std::uint64_t sent = 0, sent_again = 0, twice = 0, corrupt = 0, malformed = 0, acks = 0;
  };
  Link(std::uint32_t node, std::span<const RailOpening> rails, const LinkShared& shared);
  ~Link() override;

  // --- The gate's owner ------------------------------------------------------------------------
  /// Opens the rails; true: one at least is open.
  [[nodiscard]] bool open() noexcept;
  [[nodiscard]] SendState try_send(std::span<const Piece> pieces) noexcept override;
  /// Two packets. Where the strategy gives them different rails, the second is offered to a worker
  /// that searches, with `side` and `hand_over`, and copied and sent by it while this thread does
  /// the same with the first; what nobody has taken by then this thread sends itself. `was_beside`:
  /// another thread sent it. Each state is as that of try_send().
  struct Two {
    SendState states[2];
    bool was_beside;
  };
  [[nodiscard]] Two try_send_two(std::span<const Piece> first, std::span<const Piece> second,
                                 SideWork& side, threads::HandOver& hand_over) noexcept;

  // --- Any thread: link_lend.cc ----------------------------------------------------------------
  [[nodiscard]] std::uint32_t lent_bytes_max() const noexcept override;
  [[nodiscard]] SendState try_lend(Packet head, Piece bytes, Lent& lent) noexcept override;
  void take_back(Lent& lent) noexcept override;
  void note_end(const Lent& lent, bool is_whole) noexcept override;
  [[nodiscard]] bool is_stuck(const Lent& lent) noexcept override;

  // --- The poller ------------------------------------------------------------------------------
  /// A packet came by rail `index`. What is to go up: not empty, valid as long as `packet`.
  [[nodiscard]] Packet take(std::uint16_t index, Packet packet) noexcept;
  /// Acknowledges, sends again, asks silent rails, tries to connect. Returns how many packets.
  std::uint32_t step(std::uint64_t now_ns) noexcept;
  /// When step() has something to do; kNever: not before something comes or goes.
  [[nodiscard]] std::uint64_t due_ns() const noexcept {
    return due_ns_.load(std::memory_order_relaxed);  // See note_due().
  }
  /// As try_send(), by this rail only, whatever the strategy says: to measure it.
  [[nodiscard]] SendState try_send_by(std::uint16_t index, std::span<const Piece> pieces) noexcept;
  static constexpr std::uint16_t kAllRails = ~std::uint16_t{0};
  /// What was sent by the rail, or by all, has left, as far as rates are known. Any thread.
  [[nodiscard]] bool is_through(std::uint16_t index) const noexcept;
  /// The rail broke.
  void lose_rail(std::uint16_t index, std::string_view reason) noexcept;
  /// The peer's process has ended. Behind what has come from it, of whose end each rail tells, what
  /// is kept is dropped and nothing is tried again.
  void lose_peer() noexcept;
  /// Once true, the node counts as lost; `why` says why.
  [[nodiscard]] bool is_lost(std::string& why) const noexcept;
  /// From now on everything that came is acknowledged at once.
  void begin_close() noexcept;
  /// Nothing is kept and nothing owed, or the peer has ended.
  [[nodiscard]] bool is_quiet() const noexcept;

  // --- Any thread -------------------------------------------------------------------------------
  [[nodiscard]] std::vector<RailReport> report() const;
  /// How the strategy would share a message over the rails as they are now (`shares`, by rail); and
  /// why its first packet, of `packet_bytes` at most, goes the way it goes: its sentence.
  [[nodiscard]] std::string explain(std::uint64_t bytes, std::uint32_t packet_bytes,
                                    std::vector<RailShare>& shares) const;
  /// What the rail was sampled to cost: with that it begins, in the place of its profile.
  void know(std::uint16_t index, const WayCosts& costs) noexcept;

 private:
  /// `reviving`: its driver connects anew, and the peer has not answered yet.
  enum class RailState : std::uint8_t { unopened, up, suspect, reviving, down, ended };
  struct LinkRail {
    Driver* driver = nullptr;
    Packet peer_address;
    std::string_view name;
    std::uint16_t index = 0;
    bool is_reliable = true;  // Its driver would tell of a loss.
    bool is_ordered = true;
    bool may_miss = false;       // Single packets may not come: lost, or dropped for their sums.
    Channel* channel = nullptr;  // Guard: send_lock_. The rest: state_lock_.
    RailState state = RailState::unopened;
    RailRate rate;
    RailEcho echo;
    std::uint64_t heard_ns = kNever;  // When the first packet came by it.
    std::uint64_t next_order = 0;
    std::uint64_t newest_order =
        0;  // The next after the newest sending that is known to have come.
    // The first sending since something came by it, or of what went by it; kNever: there was none.
    std::uint64_t unheard_ns = kNever;
    // When to ask (suspect, reviving), to connect (down), or to see whether it has closed (ended).
    std::uint64_t try_ns = kNever;
    std::uint64_t ask_ns = 0;       // When one that is up, and may lose packets, may be asked.
    std::uint64_t pause_ns = 0;     // Between two such tries.
    std::uint64_t suspect_ns = 0;   // Since when it is silent.
    bool is_told = false;           // The log has it.
    std::uint64_t ended_ns = 0;     // Since when its driver refuses packets.
    std::uint32_t probe = 0;        // The last question's number,
    std::uint32_t old_probe = 0;    // and of the last one before it came into doubt.
    std::uint32_t asked = 0;        // The peer's question; is_asked: to be answered.
    bool is_asked = false;
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    LentPace lent;
  };
  static const char* to_string(RailState state) noexcept;
  static constexpr std::size_t kViewedRails = 64;
  static constexpr std::uint64_t kStuckNs = 1'000'000'000;  // See is_stuck().
  static constexpr std::uint64_t kEndNs = 200'000'000;  // From a refusal to the end of a rail.
  static constexpr std::uint64_t kPauseMaxNs = 2'000'000'000;  // Between two tries to connect.
  // What has come from a process that has ended is taken within it.
  static constexpr std::uint64_t kGoneNs = 1'000'000'000;
  // A sending is lost if the third one after it by the same rail, which keeps their order, has come
  // (about the threshold of RFC 9002, 6.1.1).
  static constexpr std::uint64_t kOvertaken = 3;

  /// As the strategy sees the rails for a packet of so many bytes; how many.
  [[nodiscard]] std::size_t view(std::uint32_t bytes, std::uint64_t tried,
                                 std::span<RailView, kViewedRails> views) const noexcept
      STERNA_REQUIRES(state_lock_);
  // link_send.cc. `tried`: rails that were full or closed just now.
  [[nodiscard]] std::uint32_t choose(std::uint32_t bytes, std::uint64_t tried) noexcept
      STERNA_REQUIRES(state_lock_);
  // In the place of the only rail that a packet may take: the strategy chooses.
  static constexpr std::uint32_t kAnyRail = ~std::uint32_t{0} - 1;
  [[nodiscard]] SendState send_one(std::span<const Piece> pieces, std::uint32_t bytes,
                                   std::uint32_t only) noexcept
      STERNA_REQUIRES(send_lock_);
  [[nodiscard]] bool takes_now(std::uint32_t bytes, std::uint32_t packets,
                               std::uint32_t only) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool is_usable(std::uint32_t at, std::uint32_t bytes) const noexcept
      STERNA_REQUIRES(state_lock_);
  void assign(std::uint32_t at, std::uint32_t sequence, const HeldPacket& packet,
              std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  void unassign(std::uint32_t at, const HeldPacket& packet) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] std::uint32_t push(HeldPacket& packet) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool keeps(std::uint32_t sequence, const HeldPacket& packet) noexcept
      STERNA_REQUIRES(state_lock_);
  [[nodiscard]] SendState pass(std::uint32_t at, std::uint32_t sequence,
                               HeldPacket& packet) noexcept STERNA_REQUIRES(send_lock_);
  [[nodiscard]] SendState take_back_or_keep(std::uint32_t sequence, HeldPacket& packet) noexcept
      STERNA_REQUIRES(send_lock_);
  struct Half;
  static void send_half(void* half) noexcept;
  [[nodiscard]] bool assign_two(Half& first, Half& second) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool send_halves(Half& first, Half& second, SideWork& side,
                                 threads::HandOver& hand_over) noexcept STERNA_REQUIRES(send_lock_);
  /// Something is due before the poller wants to look, who may sleep until then. Of a sender.
  void wake_if_sooner() noexcept {
    if (is_sooner_.load(std::memory_order_relaxed)) {  // Its own word, or that of its helper.
      is_sooner_.store(false, std::memory_order_relaxed);
      shared_.wake(shared_.core);
    }
  }
  [[nodiscard]] bool may_take(const LinkRail& rail, std::uint32_t bytes) const noexcept
      STERNA_REQUIRES(state_lock_);
  void write_header(HeldPacket& packet, LinkKind kind, std::uint16_t rail, std::uint32_t sequence,
                    std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  void note_told(HeldPacket& packet, LinkKind kind) noexcept STERNA_REQUIRES(state_lock_);
  void owe_again(std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] SendState send_kept(std::uint32_t sequence, HeldPacket& packet,
                                    std::uint32_t only = kAnyRail) noexcept
      STERNA_REQUIRES(send_lock_);
  [[nodiscard]] bool has_way() const noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] std::ptrdiff_t up_count() const noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] static bool is_in_doubt(const LinkRail& rail) noexcept {
    return rail.state == RailState::suspect || rail.state == RailState::reviving;
  }
  void doubt(LinkRail& rail, RailState state, std::uint64_t now_ns) noexcept
      STERNA_REQUIRES(state_lock_);
  void drop_rail(LinkRail& rail, std::string_view reason, std::uint64_t now_ns) noexcept
      STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool is_over() const noexcept STERNA_REQUIRES(state_lock_) {
    return is_lost_ || is_ended_;
  }
  [[nodiscard]] bool have_all_ended() const noexcept STERNA_REQUIRES(state_lock_);
  void note_closed(LinkRail& rail) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool ends_now() noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool may_have_more() const noexcept STERNA_REQUIRES(state_lock_);
  void open_rails() noexcept STERNA_REQUIRES(send_lock_);
  void note_due(std::uint64_t at_ns) noexcept STERNA_REQUIRES(state_lock_);
  void note_due_of_sender(std::uint64_t at_ns) noexcept STERNA_REQUIRES(state_lock_);
  void drop_all() noexcept STERNA_REQUIRES(state_lock_) STERNA_REQUIRES(send_lock_);
  struct Lender;
  /// The rails that are up, and how much each lends; how many.
  [[nodiscard]] std::size_t find_lenders(std::span<Lender, kViewedRails> lenders) const noexcept;
  // link_receive.cc
  /// What a packet says of those that have come.
  struct News {
    std::uint64_t now_ns;
    std::uint64_t bytes_ns;  // What the bytes of that packet have taken,
    std::uint64_t age_ns;    // and since when its sender had known all of it.
  };
  void take_acks(const LinkPacket& packet, const News& news, HeldPacket*& freed) noexcept
      STERNA_REQUIRES(state_lock_);
  void take_one(std::uint32_t sequence, const News& news, HeldPacket*& freed) noexcept
      STERNA_REQUIRES(state_lock_);
  void take_echo(std::uint32_t echo, const News& news) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool was_being_made(const LinkRail& rail, std::uint64_t sent_ns) const noexcept
      STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool take_data(LinkRail& rail, const LinkPacket& packet,
                               std::uint64_t now_ns) noexcept
      STERNA_REQUIRES(state_lock_);
  void hear(LinkRail& rail, const LinkPacket& packet, std::uint64_t now_ns) noexcept
      STERNA_REQUIRES(state_lock_);
  [[nodiscard]] LinkRail* find_rail(std::uint16_t index) noexcept STERNA_REQUIRES(state_lock_);
  // link_step.cc
  void find_missing(std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  void find_silent(std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_)
      STERNA_REQUIRES(send_lock_);
  [[nodiscard]] std::uint64_t asks_at(const LinkRail& rail) const noexcept
      STERNA_REQUIRES(state_lock_);
  void mark_missing(Sent& sent) noexcept STERNA_REQUIRES(state_lock_);
  void mark_missing(const LinkRail& rail) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] std::uint64_t patience_ns(const LinkRail& rail, std::uint32_t tries) const noexcept
      STERNA_REQUIRES(state_lock_);
  void suspect(LinkRail& rail, std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  std::uint32_t send_again(std::uint64_t now_ns) noexcept STERNA_REQUIRES(send_lock_);
  std::uint32_t acknowledge(std::uint64_t now_ns) noexcept STERNA_REQUIRES(send_lock_);
  std::uint32_t ask_and_answer(std::uint64_t now_ns) noexcept STERNA_REQUIRES(send_lock_);
  std::uint32_t connect_again(std::uint64_t now_ns) noexcept STERNA_REQUIRES(send_lock_);
  [[nodiscard]] bool try_again(LinkRail& rail, Result<Channel*>& revived,
                               std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);
  [[nodiscard]] bool send_note(std::uint32_t rail, LinkKind kind, std::uint32_t sequence,
                               std::span<const std::byte> payload) noexcept
      STERNA_REQUIRES(send_lock_);
  void plan(std::uint64_t now_ns) noexcept STERNA_REQUIRES(state_lock_);

  const std::uint32_t node_;
  const LinkShared& shared_;
  std::uint64_t full_bytes_ =
      ~std::uint64_t{0};         // Of a full packet of the smallest rail. Constant.
  std::vector<LinkRail> rails_;  // Constant in number; see LinkRail for the guards.
  std::atomic<std::uint64_t> due_ns_{kNever};
  // A sender has made something due before that, which the poller does not know yet.
  std::atomic<bool> is_sooner_{false};

  SpinLock send_lock_;
  mutable SpinLock state_lock_;
  SendWindow window_ STERNA_GUARDED_BY(state_lock_);
  ReceiveWindow received_ STERNA_GUARDED_BY(state_lock_);
  std::uint32_t again_count_ STERNA_GUARDED_BY(state_lock_) = 0;  // Sent::must_go.
  bool may_miss_ STERNA_GUARDED_BY(state_lock_) = false;      // find_missing() may find something.
  std::uint64_t miss_ns_ STERNA_GUARDED_BY(state_lock_) = 0;  // Or from then on.
  // What the peer is to be told.
  std::uint32_t owed_ STERNA_GUARDED_BY(state_lock_) = 0;  // Data packets since the last time.
  std::uint64_t owed_bytes_ STERNA_GUARDED_BY(state_lock_) = 0;
  std::uint64_t ack_ns_ STERNA_GUARDED_BY(state_lock_) = kNever;
  std::uint32_t echo_ STERNA_GUARDED_BY(state_lock_) = 0;
  std::uint64_t echo_ns_ STERNA_GUARDED_BY(state_lock_) = 0;
  std::uint32_t echo_rail_ STERNA_GUARDED_BY(state_lock_) = 0;           // Index in rails_.
  std::uint64_t lost_since_ns_ STERNA_GUARDED_BY(state_lock_) = kNever;  // Without any rail.
  std::uint64_t lent_look_ns_ STERNA_GUARDED_BY(state_lock_) = 0;  // Before it some may be stuck.
  std::uint64_t gone_ns_ STERNA_GUARDED_BY(state_lock_) = kNever;  // See kGoneNs.
  bool is_lost_ STERNA_GUARDED_BY(state_lock_) = false;
  bool is_ended_ STERNA_GUARDED_BY(state_lock_) = false;  // The peer has closed all rails.
  bool is_closing_ STERNA_GUARDED_BY(state_lock_) = false;
  std::string why_ STERNA_GUARDED_BY(state_lock_);
  Statistics statistics_ STERNA_GUARDED_BY(state_lock_);
};

}  // namespace sterna::net
