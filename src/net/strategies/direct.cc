// The strategy `direct`: one frame a packet, in order.
#include "net/strategies/builtin.h"

namespace sterna::net {
namespace {

class Direct final : public Strategy {
 public:
  std::uint32_t form(HeldPacket* first, const PacketLimits& /*limits*/,
                     std::span<Piece> pieces) const noexcept override {
    pieces[0] = first->packet();
    return 1;
  }
};

constinit const Direct kStrategy;

}  // namespace

constinit const StrategyEntry kDirectStrategy{
    .name = "direct",
    .summary = "one message a packet",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
