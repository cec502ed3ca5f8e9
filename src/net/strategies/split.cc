// The strategy `split`: the bytes to a node are shared among its rails in the ratio of their rates,
// over all that was ever sent; a packet waits for the rail whose turn it is, while that is not far
// behind with what it has. `auto` asks at each packet which rail is free first instead: better
// under changing load, but the shares of the rails are then what chance makes them.
#include "net/packets/packet.h"
#include "net/strategies/builtin.h"
#include "net/strategies/gathering.h"
#include "net/strategies/telling.h"

namespace sterna::net {
namespace {

// A rail that needs so much longer for what it has on its way than another for that and this packet
// is busy with others' packets: its turn passes.
constexpr std::uint64_t kBusyFactor = 4;

class Split final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    return gather(waiting, limits.share_bytes, limits.packet_bytes_max, chosen);
  }

  std::uint32_t choose_rail(std::span<const RailView> rails,
                            std::uint32_t bytes) const noexcept override {
    const std::uint32_t earliest = earliest_rail(rails, bytes);
    if (earliest == kNoRail) {
      return kNoRail;
    }
    const std::uint64_t most_ps = most_busy_ps(rails[earliest], bytes);
    std::uint32_t turn = kNoRail;
    std::uint64_t least_ps = 0;
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      const std::uint64_t share_ps = (rails[i].sent_bytes + bytes) * rails[i].ps_per_byte();
      if (rails[i].has_room && busy_ps(rails[i]) <= most_ps &&
          (turn == kNoRail || share_ps < least_ps)) {
        turn = i;
        least_ps = share_ps;
      }
    }
    return turn;
  }

  std::string explain(const PacketLimits& limits) const override {
    return fmt::format(
        "messages of up to {} bytes that wait share a packet; the bytes to a node are shared among "
        "its rails in the ratio of their rates, but one that needs {} times as long for what it "
        "has as the earliest for the packet too is passed over",
        limits.share_bytes, kBusyFactor);
  }

  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    double sum = 0;
    for (const RailView& rail : rails) {
      sum += 1e6 / static_cast<double>(rail.ps_per_byte());
    }
    const std::uint32_t earliest = earliest_rail(rails, bytes);
    std::string text;
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      const RailView& rail = rails[i];
      const double rate = 1e6 / static_cast<double>(rail.ps_per_byte());
      text += fmt::format(
          "{}rail {}: {:.0f} MB/s{}, a share of {:.1f} %, {} bytes so far, {} ns "
          "busy with {} bytes",
          i == 0 ? "" : "; ", i, rate, rail.measured_ps_per_byte != 0 ? " as measured" : "",
          100 * rate / sum, rail.sent_bytes, busy_ps(rail) / 1000, rail.in_flight_bytes);
      if (earliest != kNoRail && busy_ps(rail) > most_busy_ps(rails[earliest], bytes)) {
        text += fmt::format(", passed over: more than {} ns",
                            most_busy_ps(rails[earliest], bytes) / 1000);
      }
    }
    const std::uint32_t turn = choose_rail(rails, bytes);
    return text + (turn == kNoRail ? std::string{"; the packet waits"}
                                   : fmt::format("; the packet takes rail {}", turn));
  }

 private:
  static std::uint64_t busy_ps(const RailView& rail) noexcept {
    return rail.in_flight_bytes * rail.ps_per_byte();
  }
  /// More is busy with others' packets.
  static std::uint64_t most_busy_ps(const RailView& earliest, std::uint32_t bytes) noexcept {
    return kBusyFactor * (earliest.in_flight_bytes + bytes) * earliest.ps_per_byte();
  }
};

constinit const Split kStrategy;

}  // namespace

constinit const StrategyEntry kSplitStrategy{
    .name = "split",
    .summary = "bytes shared among the rails in the ratio of their rates",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
