// The strategies `aggregate` and `auto`: small frames that wait for one node share a packet. What
// is small, and for `auto` whether any frame is, the cost model of the way says.
#include <fmt/format.h>

#include "net/packets/packet.h"
#include "net/strategies/builtin.h"
#include "net/strategies/gathering.h"
#include "net/strategies/telling.h"

namespace sterna::net {
namespace {

// Who asks for `aggregate` by name gets it for messages of a few words on any rail.
constexpr std::uint32_t kShareBytesMin = 4 * kHeaderBytes;

std::string explain_sharing(std::uint32_t share_bytes) {
  return share_bytes < kHeaderBytes
             ? std::string{"messages that wait go alone: one more packet costs less than the bytes "
                           "of a message in front of it"}
             : fmt::format("messages of up to {} bytes that wait share a packet: one more packet "
                           "costs more than their bytes in front of others",
                           share_bytes);
}

class Aggregate final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    return gather(waiting, std::max(limits.share_bytes, kShareBytesMin), limits.packet_bytes_max,
                  chosen);
  }
  std::string explain(const PacketLimits& limits) const override {
    return explain_sharing(std::max(limits.share_bytes, kShareBytesMin));
  }
  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    return tell_earliest(rails, bytes);
  }
};

class Auto final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    return gather(waiting, limits.share_bytes, limits.packet_bytes_max, chosen);
  }
  std::string explain(const PacketLimits& limits) const override {
    return explain_sharing(limits.share_bytes) +
           "; each packet takes the rail on which it would arrive first, by what completions "
           "have measured";
  }
  std::string explain_rail(std::span<const RailView> rails, std::uint32_t bytes) const override {
    return tell_earliest(rails, bytes);
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
    .summary = "packets shared where the cost model says that it gains; the earliest rail",
    .strategy = &kAuto,
};

}  // namespace sterna::net
