// The strategies `aggregate` and `auto`: small frames that wait for one node share a packet, in
// order. What is small, and for `auto` whether any frame is, the cost model of the rail says.
#include <algorithm>

#include "net/packet.h"
#include "net/strategies/builtin.h"

namespace sterna::net {
namespace {

// Who asks for `aggregate` by name gets it for messages of a few words on any rail.
constexpr std::uint32_t kShareBytesMin = 4 * kHeaderBytes;

/// As many of the first frames as are small and fit, one at least. A large frame pays for its
/// packet itself; copying it behind others would delay them.
std::uint32_t gather(HeldPacket* first, std::uint32_t share_bytes, std::uint32_t packet_bytes_max,
                     std::span<Piece> pieces) noexcept {
  pieces[0] = first->packet();
  std::uint32_t count = 1;
  std::uint32_t bytes = first->bytes;
  if (bytes > share_bytes) {
    return 1;
  }
  for (HeldPacket* next = first->next; next != nullptr && count < pieces.size();
       next = next->next) {
    if (next->bytes > share_bytes || next->bytes > packet_bytes_max - bytes) {
      break;
    }
    bytes += next->bytes;
    pieces[count++] = next->packet();
  }
  return count;
}

class Aggregate final : public Strategy {
 public:
  std::uint32_t form(HeldPacket* first, const PacketLimits& limits,
                     std::span<Piece> pieces) const noexcept override {
    return gather(first, std::max(limits.share_bytes, kShareBytesMin), limits.packet_bytes_max,
                  pieces);
  }
};

class Auto final : public Strategy {
 public:
  std::uint32_t form(HeldPacket* first, const PacketLimits& limits,
                     std::span<Piece> pieces) const noexcept override {
    return gather(first, limits.share_bytes, limits.packet_bytes_max, pieces);
  }
};

constinit const Aggregate kAggregate;
constinit const Auto kAuto;

}  // namespace

constinit const StrategyEntry kAggregateStrategy{
    .name = "aggregate",
    .summary = "small messages that wait for a busy rail share a packet",
    .strategy = &kAggregate,
};

constinit const StrategyEntry kAutoStrategy{
    .name = "auto",
    .summary = "aggregate or direct, whichever the cost model finds cheaper on the rail",
    .strategy = &kAuto,
};

}  // namespace sterna::net
