// Strategies: how messages that wait for a node leave it, when a rail (a network) is free for them
// (PM2's NewMadeleine: "collect, optimise, transfer"; Aumage et al. 2007). A message that finds its
// rail free is sent alone, at once, before any strategy is asked: a strategy costs no latency.
//
// C++20, for strategies of Sterna and for those of users, which a job loads from a shared library:
//
//     class Mine : public sterna::net::Strategy { ... };
//     STERNA_STRATEGY(Mine, "mine", "what it does, in one line")
//
//     c++ -std=c++20 -shared -fPIC mine.cc -o mine.so
//     sterna run --set net_strategy=./mine.so ...
//
// One object serves all ways of a node, called by several kernel threads at once: what it remembers
// it guards itself, with atomic variables rather than with locks. It must not block, and not send.
// What it chooses is checked: a choice that breaks a rule is reported once and replaced by the
// first frame alone, or by the first rail with room, and no frame waits for more than 16 packets
// that others form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace sterna::net {

/// What a frame that waits is.
enum class Traffic : std::uint8_t {
  message,       // Of a rank to a rank: all of it, or its first part.
  more,          // The next part of the one before.
  announcement,  // Of a long message, which stays where it is until its receiver answers.
  head,          // The first bytes of such a message, sent behind its announcement unasked.
  answer,        // About messages: that a receive is ready, has ended, has room; short.
  rpc,           // A call of rpc.h or its result, of users' services and of Sterna's own.
  // What is left of long messages, and the memory of ranks that move: it does not wait among frames
  // as a rule, but goes a packet at a time while none waits, or has been refused some times.
  bulk,
  control,       // What nodes tell each other: where ranks are, what the way costs; short.
};
inline constexpr unsigned kTrafficCount = 8;

/// A message that waits, or a part or an announcement of one.
struct WaitingFrame {
  std::uint32_t bytes = 0;    // In the packet.
  std::uint8_t priority = 0;  // 0: ordinary; more is more urgent. Urgent ones stand in front.
  bool may_pass = false;      // It may leave before all that stand in front of it.
  // The same for frames between the same two ranks. Those of one flow may pass each other, but who
  // does waits at its receiver, in a copy.
  std::uint64_t flow = 0;
  // Of message, more, announcement and head; else 0. `context`: the same for messages of one
  // session (sterna/session.h), or of one use of one communicator, in this job; the number says
  // nothing else.
  std::uint32_t context = 0;
  std::int32_t tag = 0;
  std::uint64_t message_bytes = 0;  // Of the whole message.
  Traffic traffic = Traffic::message;
};

/// A packet that would teach what packets on this way cost (Strategy::learns).
enum class Trial : std::uint8_t {
  none,    // As the strategy thinks best.
  alone,   // Of one frame,
  shared,  // of as many as fit: all were otherwise lately.
};

/// What a strategy is told of the way.
struct PacketLimits {
  std::uint32_t packet_bytes_max = 0;  // Of one packet; each frame alone fits.
  // By the cost model: a frame of at most so many bytes gains by sharing a packet; 0: none does.
  std::uint32_t share_bytes = 0;
  // For a strategy that learns: what packets that others waited for have lately taken on this way,
  // each, and a byte in picoseconds; 0: not known yet.
  std::uint64_t learnt_packet_ns = 0;
  std::uint64_t learnt_ps_per_byte = 0;
  Trial trial = Trial::none;
};

/// One of several rails to a node, when a packet is to leave.
struct RailView {
  bool is_up = true;                       // It works, as far as is known.
  bool has_room = false;                   // It would take the packet now.
  std::uint64_t latency_ns = 0;            // Measured, or its profile's.
  std::uint64_t in_flight_bytes = 0;       // Sent, and not known to have come.
  std::uint64_t profile_ps_per_byte = 1;   // Picoseconds a byte: of such networks,
  std::uint64_t measured_ps_per_byte = 0;  // and of this one lately; 0: nothing was measured yet.
  std::uint64_t sent_bytes = 0;            // Ever.
  [[nodiscard]] std::uint64_t ps_per_byte() const noexcept {
    return measured_ps_per_byte != 0 ? measured_ps_per_byte : profile_ps_per_byte;
  }
};
inline constexpr std::uint32_t kNoRail = ~std::uint32_t{0};

/// The rail on which a packet of `bytes` bytes would arrive first: behind what is on its way there.
/// kNoRail: that one has no room now, and the packet gains by waiting for it: the others would take
/// longer by more than half of what the packet itself takes there, or an eighth of the latency if
/// that is more; or by more than an eighth in all.
[[nodiscard]] inline std::uint32_t earliest_rail(std::span<const RailView> rails,
                                                 std::uint32_t bytes) noexcept {
  std::uint32_t best = kNoRail;
  std::uint64_t best_ps = 0;
  std::uint64_t any_ps = ~std::uint64_t{0};  // With room or without.
  std::uint64_t least_ps = 0;                // By which others must take longer.
  for (std::uint32_t i = 0; i < rails.size(); ++i) {
    const RailView& rail = rails[i];
    const std::uint64_t ps =
        rail.latency_ns * 1000 + (rail.in_flight_bytes + bytes) * rail.ps_per_byte();
    if (rail.is_up && ps < any_ps) {
      any_ps = ps;
      least_ps = std::max(rail.latency_ns * 1000 / 8, bytes * rail.ps_per_byte() / 2);
    }
    if (rail.has_room && (best == kNoRail || ps < best_ps)) {
      best = i;
      best_ps = ps;
    }
  }
  least_ps = std::min(least_ps, any_ps / 8);
  return best != kNoRail && best_ps - std::min(best_ps, least_ps) > any_ps ? kNoRail : best;
}

class Strategy {
 public:
  /// Chooses what goes next, of the frames that wait (64 at most; in order; not empty): writes
  /// their places in `waiting` to `chosen`, ascending, and returns how many, one at least. Together
  /// they have limits.packet_bytes_max bytes at most. A place may be left out only where all that
  /// are chosen behind it may pass.
  [[nodiscard]] virtual std::uint32_t form(std::span<const WaitingFrame> waiting,
                                           const PacketLimits& limits,
                                           std::span<std::uint8_t> chosen) const noexcept = 0;

  /// Where a node is reached by several rails: by which a packet of `bytes` bytes goes; one with
  /// room, or kNoRail: it waits until something that is on its way has come, or a rail has room. So
  /// it may not wait while all rails are free.
  [[nodiscard]] virtual std::uint32_t choose_rail(std::span<const RailView> rails,
                                                  std::uint32_t bytes) const noexcept {
    return earliest_rail(rails, bytes);
  }

  /// True: it wants PacketLimits::learnt_*, which cost a look at the clock while frames wait.
  [[nodiscard]] virtual bool learns() const noexcept { return false; }

  /// One sentence for `sterna info --why`: what it would do on such a way, and for which reason.
  [[nodiscard]] virtual std::string explain(const PacketLimits& /*limits*/) const { return {}; }

  /// The same for choose_rail(): one sentence with the figures that decide where a packet of
  /// `bytes` bytes goes now. Rails are named by their places in `rails`, from 0.
  [[nodiscard]] virtual std::string explain_rail(std::span<const RailView> /*rails*/,
                                                 std::uint32_t /*bytes*/) const {
    return {};
  }

 protected:
  ~Strategy() = default;
};

/// What a library of a strategy exports.
inline constexpr std::uint32_t kStrategyAbi = 4;
struct StrategyPlugin {
  std::uint32_t abi = kStrategyAbi;
  const char* name = nullptr;
  const char* summary = nullptr;
  const Strategy* strategy = nullptr;
};

}  // namespace sterna::net

#define STERNA_STRATEGY(Class, name, summary)                                               \
  static const Class sterna_strategy_object{};                                              \
  extern "C" __attribute__((visibility("default")))                                         \
  const sterna::net::StrategyPlugin sterna_strategy_plugin{sterna::net::kStrategyAbi, name, \
                                                           summary, &sterna_strategy_object};
