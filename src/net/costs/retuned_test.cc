// Ways whose profile is wrong, over a simulated network: what their messages turn out to cost moves
// the figures of their cost model, and the thresholds with them.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::size_t kBytes = 100'000;  // Announced in any case.

/// Figures begin at the profile: those of earlier jobs of this machine do not count.
Settings settings_with(std::string_view strategy) {
  Settings settings{transport_tunables()};
  check(settings.set("net_cost_sampling", "off", SettingSource::command_line, "test").has_value() &&
            settings.set("net_strategy", strategy, SettingSource::command_line, "test").has_value(),
        "these settings exist");
  return settings;
}

struct Way {
  explicit Way(const SimOptions& options, std::string_view strategy = "auto", int rails = 1)
      : settings{settings_with(strategy)},
        cluster{SimCluster::Rails{}, std::vector(static_cast<std::size_t>(rails), options), 2,
                &settings} {}

  void post(RecvRequest& receive, std::vector<std::byte>& into) {
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                              Buffer::of(into.data(), into.size()));
  }
  void begin(SendRequest& send, const std::vector<std::byte>& bytes) {
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(bytes.data(), bytes.size()));
  }
  enum class Receiver { waits, comes_late, computes };
  /// One message; late is a millisecond.
  void exchange(std::size_t size, Receiver how = Receiver::waits) {
    std::vector<std::byte> bytes(size);
    std::vector<std::byte> into(size);
    SendRequest send;
    RecvRequest receive;
    if (how != Receiver::comes_late) {
      post(receive, into);
    }
    begin(send, bytes);
    if (how == Receiver::computes) {
      (void)cluster.nodes[0]->poll();
      cluster.clock.advance(10'000'000);  // Before it polls.
    }
    cluster.settle();
    if (how == Receiver::comes_late) {
      cluster.clock.advance(1'000'000);
      post(receive, into);
      cluster.settle();
    }
    ASSERT_TRUE(send.done.done() && receive.done.done());
  }
  void exchange_some(int count, Receiver how = Receiver::waits) {
    for (int i = 0; i < count; ++i) {
      exchange(kBytes, how);
    }
  }
  std::uint64_t threshold(std::string_view name, std::uint32_t at = 0) {
    for (const Threshold& found : cluster.nodes[at]->explain_way(1 - at, kBytes).thresholds) {
      if (found.name == name) {
        return found.bytes;
      }
    }
    return 0;
  }
  LearntCost cost(std::string_view name, std::uint32_t at = 0) {
    for (const LearntCost& found : cluster.nodes[at]->explain_way(1 - at, kBytes).costs) {
      if (found.name == name) {
        return found;
      }
    }
    return {};
  }

  const Settings settings;
  SimCluster cluster;
};

/// Each way takes a microsecond; it is said to take an eighth of that.
SimOptions slow() {
  return {.delay_ns_min = 1000,
          .delay_ns_max = 1000,
          .ps_per_byte = 100,
          .profile_latency_ns = 125,
          .packet_bytes_max = 16 << 10};
}

TEST(Retuned, TheThresholdOfAWayThatIsSlowerThanItsProfileRises) {
  Way way{slow()};
  const std::uint64_t before = way.threshold("eager_bytes");
  const std::string said = way.cluster.nodes[0]->explain(1, kBytes);
  way.exchange_some(2000);
  EXPECT_GT(way.threshold("eager_bytes"), 4 * before);
  EXPECT_NEAR(way.cost("latency_ns").value, 1000, 250);
  EXPECT_GE(way.cost("latency_ns").corrections, 5U);
  EXPECT_NE(said.find("latency 125 ns"), std::string::npos) << said;
  const std::string says = way.cluster.nodes[0]->explain(1, kBytes);
  EXPECT_EQ(says.find("latency 125 ns"), std::string::npos) << says;
}

TEST(Retuned, TheThresholdOfAWayThatIsFasterThanItsProfileFalls) {
  SimOptions options = slow();
  options.profile_latency_ns = 8000;
  Way way{options};
  const std::uint64_t before = way.threshold("eager_bytes");
  way.exchange_some(300);
  EXPECT_LT(way.threshold("eager_bytes"), before);
  EXPECT_NEAR(way.cost("latency_ns").value, 1000, 250);
}

TEST(Retuned, TheSameOfALinkOfTwoRails) {
  Way way{slow(), "auto", 2};
  const double before = way.cost("latency_ns").value;
  way.exchange_some(300);
  EXPECT_GT(way.cost("latency_ns").value, 3 * before);
  EXPECT_LT(way.cost("latency_ns").value, 1300);
}

TEST(Retuned, ReceivesThatComeLateSayNothingOfTheNetwork) {
  Way way{slow()};
  way.exchange_some(100, Way::Receiver::comes_late);
  EXPECT_EQ(way.cost("latency_ns").value, 125);
  EXPECT_EQ(way.cost("latency_ns").corrections, 0U);
}

TEST(Retuned, APeerThatComputesNowAndThenChangesLittle) {
  Way way{slow()};
  way.exchange_some(1000);
  for (int i = 0; i < 50; ++i) {
    way.exchange_some(1, Way::Receiver::computes);
    way.exchange_some(3);
  }
  EXPECT_LT(way.cost("latency_ns").value, 1300);
  EXPECT_LT(way.threshold("head_bytes"), 30'000U);
}

TEST(Retuned, OfAnnouncementsThatLieBehindEachOtherTheFirstCounts) {
  Way way{slow()};
  constexpr int kMessages = 4;
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::vector<std::byte>> into(kMessages, std::vector<std::byte>(kBytes));
    const std::vector<std::byte> bytes(kBytes);
    std::vector<RecvRequest> receives(kMessages);
    std::vector<SendRequest> sends(kMessages);
    for (int j = 0; j < kMessages; ++j) {
      way.post(receives[j], into[j]);
    }
    for (SendRequest& send : sends) {
      way.begin(send, bytes);
    }
    way.cluster.settle();
  }
  EXPECT_NEAR(way.cost("latency_ns").value, 1000, 300);
}

TEST(Retuned, BytesThatLeaveWhileOthersWaitSayWhatOneTakes) {
  SimOptions options = slow();
  options.profile_latency_ns = 1000;  // All is eager: nothing but what leaves teaches.
  options.packet_ns = 500;
  options.ps_per_byte = 1000;
  options.profile_mb_per_s = 100'000;  // A hundred times what it carries.
  options.channel_packets_max = 1;
  Way way{options, "adaptive"};
  const double before = way.cost("packet_ps_per_byte").value;
  for (int i = 0; i < 40; ++i) {
    constexpr int kMessages = 24;
    std::vector<std::vector<std::byte>> into(kMessages, std::vector<std::byte>(8000));
    const std::vector<std::byte> bytes[2] = {std::vector<std::byte>(8000),
                                             std::vector<std::byte>(3000)};
    std::vector<RecvRequest> receives(kMessages);
    std::vector<SendRequest> sends(kMessages);
    for (int j = 0; j < kMessages; ++j) {
      way.post(receives[j], into[j]);
    }
    for (int j = 0; j < kMessages; ++j) {
      way.begin(sends[j], bytes[j % 2]);
    }
    way.cluster.settle();
  }
  EXPECT_EQ(way.cluster.nodes[0]->statistics().messages_rendezvous, 0U);
  EXPECT_GT(way.cost("packet_ps_per_byte").corrections, 5U);
  EXPECT_GT(way.cost("packet_ps_per_byte").value, 3 * before);
}

/// A microsecond passes whenever somebody looks.
class LookedAtClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() noexcept override { return now_ns_ += 1000; }

 private:
  std::uint64_t now_ns_ = 0;
};

TEST(Retuned, CopiesOfMessagesThatCameBeforeTheirReceiveAreTimed) {
  LookedAtClock clock;
  const Settings settings = settings_with("auto");
  SimNetwork wires{{.clock = &clock, .profile_latency_ns = 1000, .packet_bytes_max = 16 << 10}};
  JobMap job{.node_count = 2, .rank_count = 2, .node_of_rank = {0, 1}, .host_of_node = {"a", "b"}};
  static const DriverChoice kDrivers[] = {{.entry = &kSimDriver}};
  std::vector<std::unique_ptr<SimBootstrap>> bootstraps;
  std::vector<std::unique_ptr<Transport>> nodes;
  std::vector<Endpoint*> endpoints;
  for (job.node_index = 0; job.node_index < 2; ++job.node_index) {
    bootstraps.push_back(std::make_unique<SimBootstrap>(wires, job));
    nodes.push_back(std::move(Transport::open({.bootstrap = bootstraps.back().get(),
                                               .drivers = kDrivers,
                                               .clock = &clock,
                                               .settings = &settings})
                                  .value()));
    endpoints.push_back(create_endpoint(*memory::Heap::process(), job.node_index));
    nodes.back()->install(job.node_index, endpoints.back());
  }
  const std::vector<std::byte> bytes(8000);  // Eager; to copy each byte takes 125 ps.
  std::vector<std::byte> into(bytes.size());
  const auto copies = [&] { return nodes[1]->explain_way(0, bytes.size()).costs[3]; };
  ASSERT_EQ(copies().name, "copy_ps_per_byte");
  const double before = copies().value;
  for (int i = 0; i < 320; ++i) {
    SendRequest send;
    RecvRequest receive;
    nodes[0]->send(*endpoints[0], send, {1, 0, 0}, Buffer::of(bytes.data(), bytes.size()));
    for (int polls = 0; polls < 8; ++polls) {
      (void)nodes[0]->poll();
      (void)nodes[1]->poll();
    }
    nodes[1]->receive(*endpoints[1], receive, {0, 0, 0}, Buffer::of(into.data(), into.size()));
    for (int polls = 0; polls < 8; ++polls) {
      (void)nodes[0]->poll();
      (void)nodes[1]->poll();
    }
    ASSERT_TRUE(send.done.done() && receive.done.done());
  }
  EXPECT_EQ(copies().corrections, 20U) << "one of sixteen";
  EXPECT_GT(copies().value, before + 30);
  EXPECT_LT(copies().value, 126);
  nodes.clear();
  for (Endpoint* const endpoint : endpoints) {
    destroy_endpoint(endpoint);
  }
}

}  // namespace
}  // namespace sterna::net
