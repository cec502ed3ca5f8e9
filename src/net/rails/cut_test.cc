// Rails that are cut for long, are silent over long ways, or whose peer ends: what waits goes on or
// ends with an error, and what has come is not lost. On simulated rails, with the clock of the
// simulation.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::size_t kBytes = 4 << 20;

/// How long a driver believes in a way that it has opened anew and on which nobody answers; 0: it
/// sees at once that there is none.
class CutRail : public testing::TestWithParam<std::uint64_t> {
 protected:
  static std::vector<SimOptions> rails(std::size_t count) {
    std::vector<SimOptions> all(count, wire(100));
    for (SimOptions& rail : all) {
      rail.revive_patience_ns = GetParam() * kMs;
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(PatienceMs, CutRail, testing::Values(0, 300, 4000, 20'000),
                         [](const auto& entry) { return std::to_string(entry.param); });

TEST_P(CutRail, ForTooLongEndsWhatWaitsWithAnError) {
  for (const std::size_t count : {1U, 2U, 3U}) {
    LinkPair pair{rails(count), {{"net_links", "on"}, {"net_reconnect", "5s"}}};
    LinkPair::Transfer transfer{pair, kBytes};
    pair.run(transfer, 5 * kMs);
    for (const auto& network : pair.cluster->networks) {
      network->sever(0, 1);
      pair.run(transfer, kMs);
    }
    const std::uint64_t took_ns = pair.run(transfer);
    ASSERT_TRUE(transfer.is_done());
    EXPECT_EQ(transfer.send.fault, Fault::peer_lost);
    EXPECT_EQ(transfer.receive.fault, Fault::peer_lost);
    EXPECT_GE(took_ns, 4800 * kMs);
    EXPECT_LT(took_ns, 6000 * kMs);
  }
}

TEST_P(CutRail, HoldsNothingUpWhileItConnectsAnew) {
  LinkPair pair{rails(2)};
  LinkPair::Transfer first{pair, kBytes};
  pair.run(first, 10 * kMs);
  pair.cluster->networks[1]->sever(0, 1);
  pair.run(first);
  ASSERT_TRUE(first.is_right());
  const std::uint64_t end_ns = pair.cluster->clock.now_ns() + 22'000 * kMs;
  while (pair.cluster->clock.now_ns() < end_ns) {
    LinkPair::Transfer next{pair, kBytes};
    ASSERT_LT(static_cast<double>(pair.run(next)), 1.1 * 1000 * kBytes / 100) << "one rail";
    ASSERT_TRUE(next.is_right());
    pair.pass_idle(pair.cluster->clock.now_ns() + 200 * kMs);
  }
  pair.cluster->networks[1]->mend(0, 1);
  bool is_up = false;
  for (int i = 0; i < 50 && !is_up; ++i) {
    LinkPair::Transfer next{pair, kBytes};
    pair.run(next);
    ASSERT_TRUE(next.is_right());
    is_up = pair.cluster->nodes[0]->rails(1)[1].state == std::string{"up"};
    pair.cluster->clock.advance(100 * kMs);
  }
  EXPECT_TRUE(is_up);
}

TEST_P(CutRail, IsOutlivedIfItIsWholeInTime) {
  for (const std::size_t count : {1U, 2U}) {
    LinkPair pair{rails(count), {{"net_links", "on"}, {"net_reconnect", "5s"}}};
    LinkPair::Transfer transfer{pair, kBytes};
    pair.run(transfer, 10 * kMs);
    for (const auto& network : pair.cluster->networks) {
      network->sever(0, 1);
    }
    pair.run(transfer, 3000 * kMs);
    EXPECT_FALSE(transfer.is_done());
    for (const auto& network : pair.cluster->networks) {
      network->mend(0, 1);
    }
    pair.run(transfer);
    EXPECT_TRUE(transfer.is_right());
  }
}

TEST(SilentRail, OfALongWayIsUsedAgain) {
  for (const char* const silence : {"1s", "10s"}) {  // It is asked each 62 and 100 ms.
    const SimOptions far = wire(100, 120 * kMs);
    LinkPair pair{{far, far}, {{"net_silence", silence}}};
    LinkPair::Transfer transfer{pair, kBytes};
    pair.run(transfer, 200 * kMs);
    pair.cluster->networks[0]->stall(0, 1, true);
    pair.run(transfer);
    ASSERT_TRUE(transfer.is_right());
    pair.cluster->networks[0]->stall(0, 1, false);
    LinkPair::Transfer next{pair, kBytes};
    pair.run(next);
    EXPECT_TRUE(next.is_right());
    EXPECT_EQ(pair.cluster->nodes[0]->rails(1)[0].state, std::string{"up"}) << silence;
  }
}

/// Nothing but a silent rail is left on the side that only receives: its news go by that.
TEST(SilentRail, ThatIsTheLastOneTellsWhatHasCome) {
  LinkPair pair{{wire(100), wire(100)}};
  LinkPair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10 * kMs);
  pair.cluster->networks[0]->stall(0, 1, true);
  pair.run(transfer, 700 * kMs);
  pair.cluster->networks[1]->sever(0, 1);
  pair.cluster->networks[0]->stall(0, 1, false);
  for (int i = 0; i < 4; ++i) {
    LinkPair::Transfer next{pair, kBytes};
    pair.run(next);
    EXPECT_TRUE(next.is_right());
  }
}

TEST(EndedPeer, WhatItSentBeforeComesBeforeItsEnd) {
  for (const std::size_t count : {1U, 2U}) {
    LinkPair pair{std::vector<SimOptions>(count, wire(100)), {{"net_links", "on"}}};
    LinkPair::Transfer one{pair, 8, 1};
    pair.run(one);
    ASSERT_TRUE(one.is_right());
    LinkPair::Transfer last{pair, 2000, 1};
    ASSERT_FALSE(last.receive.done.done()) << "it is on its way";
    for (const auto& network : pair.cluster->networks) {
      network->lose(1);
    }
    Transport& living = *pair.cluster->nodes[0];
    living.lose_peer(1, "killed");  // The news of the launcher was faster.
    RecvRequest never;
    living.receive(*pair.cluster->endpoints[0], never, {1, 1, 3}, Buffer{});
    for (int i = 0; i < 2000 && !never.done.done(); ++i) {
      (void)living.poll();
      pair.cluster->clock.advance(1000);
    }
    EXPECT_TRUE(last.receive.done.done());
    EXPECT_EQ(last.receive.fault, Fault::none);
    EXPECT_EQ(never.fault, Fault::peer_lost);
  }
}

}  // namespace
}  // namespace sterna::net
