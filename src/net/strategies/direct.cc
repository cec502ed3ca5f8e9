// The strategy `direct`: one frame a packet, in order, by the first rail with room.
#include "net/strategies/builtin.h"
#include "net/strategies/telling.h"

namespace sterna::net {
namespace {

class Direct final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> /*waiting*/, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> chosen) const noexcept override {
    chosen[0] = 0;
    return 1;
  }
  std::uint32_t choose_rail(std::span<const RailView> rails,
                            std::uint32_t /*bytes*/) const noexcept override {
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      if (rails[i].has_room) {
        return i;
      }
    }
    return kNoRail;
  }
  std::string explain(const PacketLimits& /*limits*/) const override {
    return "each message that waits goes alone, in order; of several rails the first with room";
  }
  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    const std::uint32_t taken = choose_rail(rails, bytes);
    return taken == kNoRail ? std::string{"no rail has room: the packet waits"}
                            : fmt::format("rail {} is the first with room, whatever it costs: {}",
                                          taken, tell_arrivals(rails, bytes));
  }
};

constinit const Direct kStrategy;

}  // namespace

constinit const StrategyEntry kDirectStrategy{
    .name = "direct",
    .summary = "one message a packet; the first rail with room",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
