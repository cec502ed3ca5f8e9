// The strategy `split`: the bytes to a node are shared among its rails in the ratio of their rates,
// over all that was ever sent; a packet waits for the rail whose turn it is, while that is not far
// behind with what it has. `auto` asks at each packet which rail is free first instead: better
// under changing load, but the shares of the rails are then what chance makes them.
#include "net/packets/packet.h"
#include "net/strategies/builtin.h"
#include "net/strategies/gathering.h"

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
    const std::uint64_t most_ps =
        kBusyFactor * (rails[earliest].in_flight_bytes + bytes) * rails[earliest].ps_per_byte();
    std::uint32_t turn = kNoRail;
    std::uint64_t least_ps = 0;
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      const std::uint64_t share_ps = (rails[i].sent_bytes + bytes) * rails[i].ps_per_byte();
      const bool is_busy = rails[i].in_flight_bytes * rails[i].ps_per_byte() > most_ps;
      if (rails[i].has_room && !is_busy && (turn == kNoRail || share_ps < least_ps)) {
        turn = i;
        least_ps = share_ps;
      }
    }
    return turn;
  }

  std::string explain(const PacketLimits& /*limits*/) const override {
    return "the bytes to a node are shared among its rails in the ratio of their rates; a rail "
           "that "
           "is busy with others' packets is passed over";
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
