// What packets are learnt to cost, and that the strategy `adaptive` comes to the better choice on
// networks that the cost model misjudges.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"
#include "net/way_learner.h"

namespace sterna::net {
namespace {

/// A way whose packets take `packet_ns` and `ns_per_byte`, always full.
struct Way {
  void send(std::uint32_t frames, std::uint64_t frame_bytes) {
    now_ns += before_ns;
    before_ns = packet_ns + frames * frame_bytes * ns_per_byte;
    learner.left(1, frames, frames * frame_bytes, true, now_ns);
  }
  std::uint64_t packet_ns;
  std::uint64_t ns_per_byte;
  WayLearner learner{};
  std::uint64_t now_ns = 0;
  std::uint64_t before_ns = 0;
};

TEST(WayLearner, TellsWhatIsOfThePacketFromWhatIsOfTheByte) {
  Way way{.packet_ns = 5000, .ns_per_byte = 2};
  EXPECT_EQ(way.learner.ps_per_byte(), 0U);
  for (std::uint32_t i = 0; i < 20; ++i) {
    way.send(1 + i % 3, 100);
  }
  EXPECT_NEAR(static_cast<double>(way.learner.packet_ns()), 5000, 10);
  EXPECT_NEAR(static_cast<double>(way.learner.ps_per_byte()), 2000, 100);
  way.packet_ns = 100;  // The network changes.
  way.ns_per_byte = 10;
  for (std::uint32_t i = 0; i < 600; ++i) {
    way.send(1 + i % 3, 100);
  }
  EXPECT_NEAR(static_cast<double>(way.learner.packet_ns()), 100, 20);
  EXPECT_NEAR(static_cast<double>(way.learner.ps_per_byte()), 10'000, 200);
}

TEST(WayLearner, AsksForOtherPacketsWhileAllAreAlike) {
  Way way{.packet_ns = 5000, .ns_per_byte = 2};
  int trials = 0;
  for (int i = 0; i < 400; ++i) {
    const Trial trial = way.learner.next_trial();
    EXPECT_NE(trial, Trial::alone);
    trials += trial == Trial::shared ? 1 : 0;
    way.send(1, 100);
  }
  EXPECT_EQ(way.learner.ps_per_byte(), 0U) << "nothing can be told apart";
  EXPECT_NEAR(trials, 100, 25);
  for (int i = 0; i < 8; ++i) {
    way.send(8, 100);
  }
  EXPECT_EQ(way.learner.next_trial(), Trial::none);
  for (int i = 0; i < 2000; ++i) {
    way.send(8, 100);
  }
  trials = 0;
  for (int i = 0; i < 640; ++i) {
    trials += way.learner.next_trial() == Trial::alone ? 1 : 0;
    way.send(8, 100);
  }
  EXPECT_NEAR(trials, 10, 2);
  EXPECT_NE(way.learner.ps_per_byte(), 0U) << "what was known stays";
}

TEST(WayLearner, APauseIsNoMeasure) {
  Way way{.packet_ns = 1000, .ns_per_byte = 1};
  for (std::uint32_t i = 0; i < 100; ++i) {
    way.send(1 + i % 3, 100);
    way.learner.left(1, 1, 100, false, way.now_ns);  // Nothing waits any more.
    way.now_ns += 1'000'000;
    way.learner.left(0, 0, 0, true, way.now_ns);
    way.before_ns = 500;  // The rest of a packet that somebody has sent.
    way.send(1 + i % 2, 100);
  }
  EXPECT_LT(way.learner.packet_ns(), 5000U);
}

TEST(WayLearner, HasNewsWhereLongPacketsAreToldApart) {
  Way way{.packet_ns = 5000, .ns_per_byte = 2};
  for (std::uint32_t i = 0; i < 100; ++i) {
    way.send(1 + i % 3, 8000);
    way.send(1, 2000);
  }
  EXPECT_NEAR(static_cast<double>(way.learner.take_news()), 2000, 20);
  EXPECT_EQ(way.learner.take_news(), 0U) << "nothing was seen since";
  Way alike{.packet_ns = 5000, .ns_per_byte = 2};
  Way short_ones{.packet_ns = 5000, .ns_per_byte = 2};
  for (std::uint32_t i = 0; i < 100; ++i) {
    alike.send(1, 8000);
    short_ones.send(1 + i % 3, 100);
  }
  EXPECT_EQ(alike.learner.take_news(), 0U);
  EXPECT_EQ(short_ones.learner.take_news(), 0U);
}

constexpr int kBurst = 24;
constexpr int kBursts = 150;
constexpr int kLearning = 30;  // Bursts before what counts.

/// Bursts of messages of `bytes` bytes: how long after its burst began one has come, in the mean.
double mean_ns(const char* strategy, SimOptions options, std::size_t bytes) {
  Settings settings{transport_tunables()};
  check(settings.set("net_strategy", strategy, SettingSource::command_line, "test").has_value(),
        "the strategy exists");
  options.channel_packets_max = 1;
  options.packet_bytes_max = static_cast<std::uint32_t>(8 * (bytes + 48));
  SimCluster cluster{options, 2, &settings};
  std::vector<std::byte> data(bytes);
  double sum = 0;
  for (int burst = 0; burst < kBursts; ++burst) {
    std::vector<std::byte> into(bytes);
    SendRequest sends[kBurst];
    RecvRequest receives[kBurst];
    bool has_come[kBurst] = {};
    for (RecvRequest& receive : receives) {
      cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                                Buffer::of(into.data(), bytes));
    }
    for (SendRequest& send : sends) {
      cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                             Buffer::of(data.data(), bytes));
    }
    const std::uint64_t start_ns = cluster.clock.now_ns();
    for (int left = kBurst; left != 0;) {
      if (cluster.poll() == 0) {
        const std::uint64_t next_ns = cluster.network->next_arrival_ns();
        check(next_ns != kNever, "a message is on its way");
        cluster.clock.advance(next_ns - std::min(next_ns, cluster.clock.now_ns()));
      }
      for (int i = 0; i < kBurst; ++i) {
        if (!has_come[i] && receives[i].done.done()) {
          has_come[i] = true;
          --left;
          sum += burst < kLearning ? 0 : static_cast<double>(cluster.clock.now_ns() - start_ns);
        }
      }
    }
    cluster.settle();
  }
  return sum / ((kBursts - kLearning) * kBurst);
}

TEST(Adaptive, SharesPacketsThatAreDearerThanTheyLook) {
  const SimOptions dear{.packet_ns = 20'000, .ps_per_byte = 6000};
  const double alone_ns = mean_ns("direct", dear, 144);
  const double shared_ns = mean_ns("aggregate", dear, 144);
  EXPECT_LT(shared_ns, 0.5 * alone_ns) << "the better choice";
  EXPECT_GT(mean_ns("auto", dear, 144), 0.9 * alone_ns) << "which the cost model does not know";
  EXPECT_LE(mean_ns("adaptive", dear, 144), 1.1 * shared_ns);
}

TEST(Adaptive, LetsMessagesGoAloneWherePacketsCostNothing) {
  const SimOptions cheap{.packet_ns = 0, .ps_per_byte = 1000};
  const double alone_ns = mean_ns("direct", cheap, 600);
  const double shared_ns = mean_ns("aggregate", cheap, 600);
  EXPECT_GT(shared_ns, 1.15 * alone_ns) << "the worse choice";
  EXPECT_GT(mean_ns("auto", cheap, 600), 1.15 * alone_ns) << "which is the cost model's";
  EXPECT_LE(mean_ns("adaptive", cheap, 600), 1.1 * alone_ns);
}

}  // namespace
}  // namespace sterna::net
