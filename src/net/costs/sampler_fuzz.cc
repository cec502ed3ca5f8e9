// What a peer says while ways are measured: packets, answers and results of any kind and at any
// time. Figures that no network has are not believed, and messages go on.
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

const Settings& settings() {
  static const Settings kept = [] {
    Settings one{transport_tunables()};
    check(one.set("net_cost_sampling", "start", SettingSource::command_line, "").has_value(),
          "the setting exists");
    return one;
  }();
  return kept;
}

struct Pair {
  Pair() {
    for (const auto& node : cluster.nodes) {
      node->sample_costs();
    }
    exchange();
  }
  /// Node 1 gets a message from node 0, as it should.
  void exchange() {
    std::vector<std::byte> bytes(16);
    std::vector<std::byte> into(16);
    SendRequest send;
    RecvRequest receive;
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                              Buffer::of(into.data(), into.size()));
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(bytes.data(), bytes.size()));
    for (int rounds = 0; rounds < 10'000 && !(send.done.done() && receive.done.done()); ++rounds) {
      cluster.clock.advance(200);
      (void)cluster.poll();
    }
    check(send.done.done() && receive.done.done() && receive.fault == Fault::none,
          "messages go on whatever is said of costs");
  }
  SimCluster cluster{{.node_count = 2, .delay_ns_max = 100}, 2, &settings()};
};

}  // namespace
}  // namespace sterna::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  using namespace sterna::net;
  Pair pair;
  std::size_t at = 0;
  const auto next = [&](std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      value = value << 8 | (at < bytes ? data[at] : 0);
      ++at;
    }
    return value;
  };
  while (at < bytes) {
    FrameHeader header;
    const std::uint64_t kind = next(1);
    header.kind = kind % 3 == 0   ? FrameKind::sample
                  : kind % 3 == 1 ? FrameKind::sample_answer
                                  : FrameKind::sample_result;
    const std::uint32_t to = kind / 4 % 2;
    header.source = kind % 16 == 15 ? static_cast<std::uint32_t>(next(4)) : 1 - to;
    header.destination = to;
    header.cookie = next(kind % 8 < 6 ? 1 : 8);
    header.tag = static_cast<std::int32_t>(next(1));
    header.context = static_cast<std::uint32_t>(next(1)) % 4;
    header.sequence = static_cast<std::uint32_t>(next(1)) % 4;
    const std::size_t usual = header.kind == FrameKind::sample          ? 8
                              : header.kind == FrameKind::sample_answer ? sizeof(SampleAnswer)
                                                                        : sizeof(WayCosts);
    const std::size_t payload_bytes = kind % 32 == 31 ? next(1) : usual;
    header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    std::vector<std::byte> packet(kHeaderBytes + payload_bytes);
    std::memcpy(packet.data(), &header, kHeaderBytes);
    for (std::size_t i = kHeaderBytes; i < packet.size(); ++i) {
      packet[i] = static_cast<std::byte>(next(1));
    }
    pair.cluster.network->inject(1 - to, to, packet);
    pair.cluster.clock.advance(next(1) * 16);
    (void)pair.cluster.poll();
  }
  pair.exchange();
  for (std::uint32_t node = 0; node < 2; ++node) {
    for (const CostModel::Row& row : pair.cluster.nodes[node]->cost(1 - node).figures()) {
      check(std::isfinite(row.figure.value) && row.figure.value >= 0 && row.figure.value <= 2e9,
            "a figure is one that a network may have");
    }
    check(pair.cluster.nodes[node]->cost(1 - node).eager_bytes() <= 1 << 20,
          "a threshold stays within the windows");
  }
  return 0;
}
