// Links on simulated rails, with the clock of the simulation: bytes are shared in the ratio of the
// rails, and nothing is lost or comes twice when rails lose packets, fall silent or break.
#include "net/rails/link.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

using Pair = LinkPair;

constexpr std::size_t kBytes = 8 << 20;

TEST(Link, TwoEqualRailsTakeHalfEach) {
  Pair pair{{wire(100), wire(100)}};
  Pair::Transfer transfer{pair, kBytes};
  const std::uint64_t took_ns = pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  EXPECT_LT(static_cast<double>(took_ns), 1.1 * 1000 * kBytes / 200) << "the sum of the rails";
}

TEST(Link, UnequalRailsTakeWhatTheyCarry) {
  Pair pair{{wire(100), wire(25, 200'000), wire(400)}};
  Pair::Transfer warm{pair, kBytes};  // The rates are learnt: all have the profile's otherwise.
  pair.run(warm);
  Pair::Transfer transfer{pair, kBytes};
  const std::uint64_t took_ns = pair.run(transfer);
  const std::vector<RailReport> rails = pair.cluster->nodes[0]->rails(1);
  ASSERT_EQ(rails.size(), 3U);
  EXPECT_EQ(rails[1].name, "sim@second");
  EXPECT_STREQ(rails[1].state, "up");
  EXPECT_NEAR(static_cast<double>(rails[1].ps_per_byte), 40'000, 8000) << "25 MB/s";
  EXPECT_TRUE(warm.is_right());
  EXPECT_TRUE(transfer.is_right());
  EXPECT_LT(static_cast<double>(took_ns), 1.1 * 1000 * kBytes / 525) << "the sum of the rails";
}

/// 100 and 25 MB/s, which their drivers take for equal.
std::vector<SimOptions> unequal() {
  std::vector<SimOptions> rails{wire(100), wire(25)};
  rails[0].profile_mb_per_s = rails[1].profile_mb_per_s = 50;
  return rails;
}

/// How much of the first ten packets takes the slower one.
double first_share_of_slow(Pair& pair) {
  Pair::Transfer transfer{pair, 150'000};
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  const auto rails = pair.cluster->nodes[0]->rails(1);
  return double(rails[1].bytes) / double(rails[0].bytes + rails[1].bytes);
}

TEST(Link, UnequalRailsAreSplitAsTheyWereSampledFromTheFirstTransferOn) {
  for (const char* const strategy : {"split", "auto"}) {
    Pair unknown{unequal(), {{"net_strategy", strategy}}};
    EXPECT_GT(first_share_of_slow(unknown), 0.4) << strategy << ": by the profile";
    Pair known{unequal(), {{"net_strategy", strategy}}};
    const CostsEntry entries[] = {
        {"link(sim)", "", 16 << 10, 0, {.latency_ns = 20'000, .packet_ps_per_byte = 10'000}},
        {"link(sim@second)",
         "",
         16 << 10,
         0,
         {.latency_ns = 20'000, .packet_ps_per_byte = 40'000}}};
    known.cluster->nodes[0]->know_costs(entries, 0);
    EXPECT_NEAR(first_share_of_slow(known), 0.2, 0.08) << strategy;
  }
}

TEST(Link, EachRailIsSampledBesideItsMessages) {
  Pair pair{unequal()};
  pair.cluster->nodes[0]->sample_costs();
  pair.cluster->nodes[1]->sample_costs();
  std::vector<CostsEntry> sampled;
  for (int turn = 0; turn < 80'000 && sampled.size() < 3; ++turn) {
    Pair::Transfer transfer{pair, 1000};
    pair.run(transfer);
    pair.cluster->settle();
    sampled = pair.cluster->nodes[0]->sampled_costs(7);
  }
  ASSERT_EQ(sampled.size(), 3U) << "both rails, and the link";
  EXPECT_EQ(sampled[1].driver, "link(sim@second)");
  EXPECT_EQ(sampled[2].driver, "link(sim+sim@second)");
  EXPECT_NEAR(sampled[0].costs.packet_ps_per_byte, 10'000, 1000);
  EXPECT_NEAR(sampled[1].costs.packet_ps_per_byte, 40'000, 4000);
}

TEST(Link, NothingIsLostOrDoubledByARailThatLosesDoublesAndChangesPackets) {
  SimOptions bad = wire(100);
  bad.lost_per_mille = bad.twice_per_mille = bad.corrupt_per_mille = 30;
  for (const std::vector<SimOptions>& rails :
       {std::vector{bad}, std::vector{wire(100), bad}, std::vector{bad, bad}}) {
    Pair pair{rails, {{"net_checksums", "on"}}};
    Pair::Transfer there{pair, kBytes};
    pair.run(there);
    Pair::Transfer back{pair, 1000, 1};
    pair.run(back);
    EXPECT_TRUE(there.is_right());
    EXPECT_TRUE(back.is_right());
  }
}

TEST(Link, WithoutSumsAByteThatWasChangedIsNotSeen) {
  SimOptions bad = wire(100);
  bad.corrupt_per_mille = 100;
  Pair pair{{wire(100), bad}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 2'000'000'000);
  EXPECT_FALSE(transfer.is_right()) << "so the test above can fail";
}

/// It says that it loses nothing and copies directly, as shared memory does.
SimOptions memory_that_changes_bytes() {
  SimOptions memory = wire(1000, 1000);
  memory.has_direct = true;
  memory.corrupt_per_mille = 30;
  memory.hides_faults = true;
  return memory;
}

TEST(Link, SumsFindWhatAWayThatCouldBeCopiedDirectlyHasChanged) {
  Pair pair{{memory_that_changes_bytes()}, {{"net_checksums", "on"}}};
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1000}, kBytes}) {
    Pair::Transfer transfer{pair, bytes};
    pair.run(transfer);
    EXPECT_TRUE(transfer.is_right()) << bytes;
  }
  const std::vector<RailReport> rails = pair.cluster->nodes[0]->rails(1);
  ASSERT_EQ(rails.size(), 1U);
  EXPECT_GT(rails[0].sent_again, 0U);
  EXPECT_GT(pair.cluster->nodes[1]->rails(0)[0].corrupt, 0U);
  EXPECT_EQ(pair.cluster->nodes[0]->statistics().bytes_direct, 0U);
}

TEST(Link, TheLastPacketOfARailThatSaysItLosesNothingIsSentAgainWhenItsSumWasWrong) {
  SimOptions always = memory_that_changes_bytes();
  always.corrupt_per_mille = 500;
  Pair pair{{always}, {{"net_checksums", "on"}}};
  for (int i = 0; i < 20; ++i) {
    Pair::Transfer transfer{pair, 8};  // Nothing follows that would show it.
    pair.run(transfer);
    ASSERT_TRUE(transfer.is_right()) << i;
  }
}

TEST(Link, WithoutSumsAWayThatCanBeCopiedDirectlyHasNone) {
  Pair pair{{memory_that_changes_bytes()}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 2'000'000'000);
  EXPECT_TRUE(pair.cluster->nodes[0]->rails(1).empty());
}

TEST(Link, TrafficGoesOnWhenARailBreaksAndComesBackToItWhenItIsWhole) {
  Pair pair{{wire(100), wire(100)}};
  SimNetwork& second = *pair.cluster->networks[1];
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10'000'000);
  ASSERT_FALSE(transfer.is_done());
  second.sever(0, 1);
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  const std::uint64_t while_broken = second.packet_count();
  Pair::Transfer alone{pair, kBytes};
  EXPECT_GT(static_cast<double>(pair.run(alone)), 0.95 * 1000 * kBytes / 100);
  EXPECT_TRUE(alone.is_right());
  EXPECT_EQ(second.packet_count(), while_broken);
  second.mend(0, 1);
  Pair::Transfer wait{pair, 8};
  pair.run(wait);
  pair.cluster->clock.advance(3'000'000'000);
  pair.cluster->settle();
  Pair::Transfer both{pair, kBytes};
  EXPECT_LT(static_cast<double>(pair.run(both)), 1.1 * 1000 * kBytes / 200);
  EXPECT_TRUE(both.is_right());
}

TEST(Link, ARailThatFallsSilentIsAvoidedUntilItAnswers) {
  Pair pair{{wire(100), wire(100)}};
  SimNetwork& first = *pair.cluster->networks[0];
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10'000'000);
  first.stall(0, 1, true);
  EXPECT_LT(pair.run(transfer), 1'500'000'000U) << "0.5 s of silence, then the other rail";
  EXPECT_TRUE(transfer.is_right());
  Pair::Transfer other{pair, kBytes};
  EXPECT_LT(static_cast<double>(pair.run(other)), 1.2 * 1000 * kBytes / 100);
  EXPECT_TRUE(other.is_right());
  first.stall(0, 1, false);
  pair.cluster->settle();
  Pair::Transfer both{pair, kBytes};
  EXPECT_LT(static_cast<double>(pair.run(both)), 1.1 * 1000 * kBytes / 200);
  EXPECT_TRUE(both.is_right());
}

TEST(Link, AShortCutOfTheOnlyRailIsOutlived) {
  Pair pair{{wire(100)}, {{"net_links", "on"}, {"net_reconnect", "5s"}}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10'000'000);
  pair.cluster->network->sever(0, 1);
  pair.run(transfer, 2'000'000'000);
  EXPECT_FALSE(transfer.is_done());
  pair.cluster->network->mend(0, 1);
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
}

TEST(Link, AConnectionThatIsAnewAtOnceHasLostWhatTheOldOneHad) {
  for (const std::vector<SimOptions>& rails : {std::vector{wire(100)}, {wire(100), wire(100)}}) {
    Pair pair{rails, {{"net_links", "on"}}};
    Pair::Transfer transfer{pair, kBytes};
    pair.run(transfer, 10'000'000);
    pair.cluster->network->sever(0, 1);
    pair.cluster->network->mend(0, 1);
    EXPECT_LT(pair.run(transfer), 200'000'000U) << "it is not found by its silence";
    EXPECT_TRUE(transfer.is_right());
  }
}

TEST(Link, ALongOneEndsWhatWaitsWithAnError) {
  Pair pair{{wire(100)}, {{"net_links", "on"}, {"net_reconnect", "5s"}}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10'000'000);
  pair.cluster->network->sever(0, 1);
  const std::uint64_t took_ns = pair.run(transfer);
  ASSERT_TRUE(transfer.is_done());
  EXPECT_EQ(transfer.send.fault, Fault::peer_lost);
  EXPECT_EQ(transfer.receive.fault, Fault::peer_lost);
  EXPECT_GE(took_ns, 5'000'000'000U);
  EXPECT_LT(took_ns, 6'000'000'000U);
}

TEST(Link, AProcessThatHasEndedIsNotWaitedFor) {
  Pair pair{{wire(100), wire(100)}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer, 10'000'000);
  for (const auto& network : pair.cluster->networks) {
    network->lose(1);
  }
  pair.cluster->nodes[0]->lose_peer(1, "killed");
  while (!transfer.send.done.done() && pair.cluster->clock.now_ns() < 1'000'000'000) {
    if (pair.cluster->poll() == 0) {
      pair.cluster->clock.advance(1000);
    }
  }
  EXPECT_EQ(transfer.send.fault, Fault::peer_lost);
  EXPECT_LT(pair.cluster->clock.now_ns(), 100'000'000U);
}

/// Of two nodes whose only rail may lose packets, and has been idle for long.
struct Idle : Pair {
  Idle() : Pair{{lossy()}} {
    Transfer first{*this, 1000};
    run(first);
    cluster->settle();
    cluster->clock.advance(60'000'000'000);
  }
  static SimOptions lossy() {
    SimOptions bad = wire(100);
    bad.lost_per_mille = 1;
    return bad;
  }
};

TEST(Link, ARailThatWasIdleIsNotLostWithItsFirstPackets) {
  Idle pair;
  pair.cluster->network->stall(0, 1, true);
  Pair::Transfer transfer{pair, 1000};
  pair.run(transfer, 4'000'000'000);
  EXPECT_FALSE(transfer.is_done());
  pair.cluster->network->stall(0, 1, false);
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
}

TEST(Link, ARailThatLosesEverythingIsLostAfterItsSilence) {
  Idle pair;
  pair.cluster->network->stall(0, 1, true);
  Pair::Transfer transfer{pair, 100'000};
  const std::uint64_t start_ns = pair.cluster->clock.now_ns();
  std::uint64_t took_ns = 0;
  while (!transfer.send.done.done() && took_ns < 20'000'000'000) {
    (void)pair.cluster->poll();
    pair.cluster->clock.advance(1'000'000);
    took_ns = pair.cluster->clock.now_ns() - start_ns;
  }
  EXPECT_EQ(transfer.send.fault, Fault::peer_lost);
  EXPECT_GE(took_ns, 10'000'000'000U);
  EXPECT_LT(took_ns, 11'000'000'000U);
}

TEST(Link, ASilentRailThatMayLosePacketsIsUsedAgainWhenItAnswers) {
  Pair pair{{Idle::lossy(), wire(100)}};
  pair.cluster->networks[0]->stall(0, 1, true);
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  pair.cluster->clock.advance(20'000'000'000);
  Pair::Transfer other{pair, kBytes};
  pair.run(other);
  EXPECT_TRUE(other.is_right());
  pair.cluster->networks[0]->stall(0, 1, false);
  pair.run(other, 1'000'000'000);
  pair.cluster->settle();
  const std::uint64_t before = pair.cluster->networks[0]->packet_count();
  Pair::Transfer both{pair, kBytes};
  pair.run(both);
  EXPECT_TRUE(both.is_right());
  EXPECT_GT(pair.cluster->networks[0]->packet_count(), before + 100);
}

TEST(Link, AClosedNodeHasBeenHeardByItsPeers) {
  SimOptions bad = wire(100);
  bad.lost_per_mille = 200;
  Pair pair{{bad, bad}};
  Pair::Transfer transfer{pair, 100'000};
  pair.run(transfer);
  ASSERT_TRUE(transfer.is_right());
  for (const auto& node : pair.cluster->nodes) {
    node->close();
  }
  const std::uint64_t start_ns = pair.cluster->clock.now_ns();
  while (!pair.cluster->nodes[0]->is_drained() || !pair.cluster->nodes[1]->is_drained()) {
    pair.cluster->poll();
    pair.cluster->clock.advance(10'000);
    ASSERT_LT(pair.cluster->clock.now_ns() - start_ns, 10'000'000'000U) << "it ends";
  }
}

TEST(Link, ANodeWithOneRailThatLosesNothingHasNone) {
  Pair pair{{wire(100)}};
  EXPECT_TRUE(pair.cluster->nodes[0]->keeps_order());
  EXPECT_EQ(pair.cluster->nodes[0]->due_ns(), kNever);
}

}  // namespace
}  // namespace sterna::net
