// The strategy `urgent`, quality of service: of the frames that wait those of the highest priority
// go first, and among these the short ones; and where there are several rails, the quickest keeps
// room for short packets: bulk takes it only while little is on its way there.
#include "net/packets/packet.h"
#include "net/strategies/builtin.h"
#include "net/strategies/telling.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kShortBytes = 4 << 10;

/// The rail of the smallest latency: the first of those that are equal but for what measures are
/// off, so that rails of one kind do not change their roles.
std::uint32_t quickest(std::span<const RailView> rails) noexcept {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < rails.size(); ++i) {
    best = rails[i].latency_ns / 4 * 5 < rails[best].latency_ns ? i : best;
  }
  return best;
}

class Urgent final : public Strategy {
 public:
  /// One frame a packet: urgent ones do not wait for others' bytes.
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> chosen) const noexcept override {
    std::size_t best = 0;
    for (std::size_t i = 1; i < waiting.size() && waiting[i].may_pass; ++i) {
      const WaitingFrame& frame = waiting[i];
      const bool is_shorter = frame.bytes <= kShortBytes && waiting[best].bytes > kShortBytes;
      const bool is_own_flow = frame.flow == waiting[best].flow;
      if (frame.priority > waiting[best].priority ||
          (frame.priority == waiting[best].priority && is_shorter && !is_own_flow)) {
        best = i;
      }
    }
    chosen[0] = static_cast<std::uint8_t>(best);
    return 1;
  }

  std::uint32_t choose_rail(std::span<const RailView> rails,
                            std::uint32_t bytes) const noexcept override {
    const std::uint32_t quick = quickest(rails);
    if (bytes <= kShortBytes && rails[quick].has_room) {
      return quick;
    }
    const std::uint32_t earliest = earliest_rail(rails, bytes);
    if (earliest != quick || bytes <= kShortBytes || rails[quick].in_flight_bytes < bytes) {
      return earliest;
    }
    std::uint32_t best = kNoRail;
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      if (i != quick && rails[i].has_room &&
          (best == kNoRail || rails[i].in_flight_bytes * rails[i].ps_per_byte() <
                                  rails[best].in_flight_bytes * rails[best].ps_per_byte())) {
        best = i;
      }
    }
    return best;
  }

  std::string explain(const PacketLimits& /*limits*/) const override {
    return "messages of the highest priority go first, short ones before long ones of other pairs; "
           "the quickest rail keeps room for packets of up to 4 KB";
  }

  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    const std::uint32_t quick = quickest(rails);
    const std::uint32_t taken = choose_rail(rails, bytes);
    const std::string takes =
        taken == kNoRail ? std::string{"waits"} : fmt::format("takes rail {}", taken);
    const std::string why =
        bytes <= kShortBytes
            ? fmt::format(
                  "short ones take the quickest, rail {} (latency {} ns), while it has room", quick,
                  rails[quick].latency_ns)
        : taken == quick
            ? fmt::format("rail {}, the quickest, has {} bytes on their way, less than this packet",
                          quick, rails[quick].in_flight_bytes)
        : earliest_rail(rails, bytes) == quick
            ? fmt::format(
                  "rail {}, the quickest, keeps room for short ones: it has {} bytes on "
                  "their way already",
                  quick, rails[quick].in_flight_bytes)
            : std::string{"it arrives there first"};
    return fmt::format("a packet of {} bytes {}: {}; {}", bytes, takes, why,
                       tell_arrivals(rails, bytes));
  }
};

constinit const Urgent kStrategy;

}  // namespace

constinit const StrategyEntry kUrgentStrategy{
    .name = "urgent",
    .summary = "the highest priority first, short before long; the quickest rail for the short",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
