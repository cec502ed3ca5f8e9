// A strategy of one's own (sterna/strategy.hpp): the shortest messages go first, as many as fit one
// packet; of several rails short packets take the one with the least on its way. Built and run by
//
//   mpicxx -std=c++20 -shared -fPIC strategy_shortest.cc -o strategy_shortest.so
//   sterna run -n 8 --nodes 2 --drivers tcp --set net_strategy=./strategy_shortest.so ./ring
#include <algorithm>

#include <sterna/strategy.hpp>

namespace {

using namespace sterna::net;

class Shortest : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& limits,
                     std::span<std::uint8_t> chosen) const noexcept override {
    // Who may not pass the first keeps its place, so only those before it are looked at.
    std::uint8_t places[64];
    std::size_t count = 1;
    places[0] = 0;
    while (count < waiting.size() && waiting[count].may_pass) {
      places[count] = static_cast<std::uint8_t>(count);
      ++count;
    }
    std::stable_sort(places, places + count, [&](std::uint8_t a, std::uint8_t b) {
      return waiting[a].bytes < waiting[b].bytes;
    });
    std::uint32_t bytes = 0;
    std::uint32_t taken = 0;
    while (taken < count && bytes + waiting[places[taken]].bytes <= limits.packet_bytes_max) {
      bytes += waiting[places[taken++]].bytes;
    }
    std::sort(places, places + taken);  // The interface wants them ascending.
    std::copy_n(places, taken, chosen.begin());
    return taken;
  }

  std::uint32_t choose_rail(std::span<const RailView> rails,
                            std::uint32_t bytes) const noexcept override {
    if (bytes > 4096) {
      return earliest_rail(rails, bytes);
    }
    std::uint32_t best = kNoRail;
    for (std::uint32_t i = 0; i < rails.size(); ++i) {
      if (rails[i].has_room &&
          (best == kNoRail || rails[i].in_flight_bytes < rails[best].in_flight_bytes)) {
        best = i;
      }
    }
    return best;
  }

  std::string explain(const PacketLimits& /*limits*/) const override {
    return "the shortest messages go first, as many as fit one packet";
  }
};

}  // namespace

STERNA_STRATEGY(Shortest, "shortest", "the shortest messages first, as many as fit one packet")
