// The strategy `aggregate`: small frames that wait for one node share a packet, in order.
#include "net/strategies/builtin.h"

namespace sterna::net {
namespace {

// A large frame pays for its packet itself; copying it behind others would delay them.
constexpr std::uint32_t kSmallBytes = 1024;

class Aggregate final : public Strategy {
 public:
  std::uint32_t form(HeldPacket* first, std::uint32_t packet_bytes_max,
                     std::span<Piece> pieces) const noexcept override {
    pieces[0] = first->packet();
    std::uint32_t count = 1;
    std::uint32_t bytes = first->bytes;
    if (first->bytes > kSmallBytes) {
      return 1;
    }
    for (HeldPacket* next = first->next; next != nullptr && count < pieces.size();
         next = next->next) {
      if (next->bytes > kSmallBytes || next->bytes > packet_bytes_max - bytes) {
        break;
      }
      bytes += next->bytes;
      pieces[count++] = next->packet();
    }
    return count;
  }
};

constinit const Aggregate kStrategy;

}  // namespace

constinit const StrategyEntry kAggregateStrategy{
    .name = "aggregate",
    .summary = "small messages that wait for a busy rail share a packet",
    .strategy = &kStrategy,
};

}  // namespace sterna::net
