// The strategy `adaptive`: begins as `auto`, then lets frames share packets by what packets on this
// way turn out to cost (way_learner.h) instead of what was sampled or what networks of its kind
// cost; rails that nothing is known of get some packets, so that they are measured.
#include <fmt/format.h>

#include "net/packets/packet.h"
#include "net/strategies/builtin.h"
#include "net/strategies/gathering.h"
#include "net/strategies/telling.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kShareBytesMax = 16 << 10;  // As the cost model: longer ones are copied.
constexpr std::uint64_t kTriedPackets = 8;  // To a rail that was never measured, while it is idle.

/// As CostModel::share_bytes(), of what was learnt.
std::uint32_t share_bytes(const PacketLimits& limits) noexcept {
  if (limits.learnt_ps_per_byte == 0) {
    return limits.share_bytes;
  }
  return static_cast<std::uint32_t>(
      std::min(limits.learnt_packet_ns * 1000 / limits.learnt_ps_per_byte, kShareBytesMax));
}

class Adaptive final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    if (limits.trial == Trial::alone) {
      chosen[0] = 0;
      return 1;
    }
    const std::uint32_t share = limits.trial == Trial::shared
                                    ? static_cast<std::uint32_t>(kShareBytesMax)
                                    : share_bytes(limits);
    return gather(waiting, share, limits.packet_bytes_max, chosen);
  }

  std::uint32_t choose_rail(std::span<const RailView> rails,
                            std::uint32_t bytes) const noexcept override {
    const std::uint32_t tried = to_try(rails, bytes);
    return tried != kNoRail ? tried : earliest_rail(rails, bytes);
  }

  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    const std::uint32_t tried = to_try(rails, bytes);
    return tried == kNoRail
               ? tell_earliest(rails, bytes)
               : fmt::format(
                     "a packet of {} bytes takes rail {}, which was never measured, to "
                     "measure it: it has had {} bytes of the {} that are tried",
                     bytes, tried, rails[tried].sent_bytes, kTriedPackets * bytes);
  }

  bool learns() const noexcept override { return true; }

  std::string explain(const PacketLimits& limits) const override {
    const std::uint32_t share = share_bytes(limits);
    const std::string why =
        limits.learnt_ps_per_byte == 0
            ? std::string{"by the cost model, until packets that waited were measured"}
            : fmt::format("a packet has lately taken {} ns and {} ps a byte",
                          limits.learnt_packet_ns, limits.learnt_ps_per_byte);
    const std::string what =
        share < kHeaderBytes
            ? std::string{"messages that wait go alone"}
            : fmt::format("messages of up to {} bytes that wait share a packet", share);
    return fmt::format(
        "{} ({}; one packet of 64 is formed otherwise where all were alike, to keep knowing); each "
        "takes the rail on which it would arrive first, unmeasured ones are tried",
        what, why);
  }

 private:
  /// A rail that was never measured and is idle; kNoRail: there is none.
  static std::uint32_t to_try(std::span<const RailView> rails, std::uint32_t bytes) noexcept {
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      const RailView& rail = rails[i];
      if (rail.has_room && rail.measured_ps_per_byte == 0 &&
          rail.sent_bytes < kTriedPackets * bytes && rail.in_flight_bytes <= 2 * bytes) {
        return i;
      }
    }
    return kNoRail;
  }
};

constinit const Adaptive kStrategy;

}  // namespace

constinit const StrategyEntry kAdaptiveStrategy{
    .name = "adaptive",
    .summary = "as auto, by what packets on each way turn out to cost",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
