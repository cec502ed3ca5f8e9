// Rails that are sampled while messages go: what that costs the messages, and what they make of the
// figures.
#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

/// So many messages to and fro, without a pause, by nodes that look each microsecond: rounds of who
/// does not say nothing of the way. Returns how long they took.
std::uint64_t ping_pong(LinkPair& pair, std::size_t bytes, int count) {
  const std::uint64_t begin_ns = pair.cluster->clock.now_ns();
  for (int i = 0; i < count; ++i) {
    for (const std::uint32_t from : {0U, 1U}) {
      LinkPair::Transfer transfer{pair, bytes, from};
      while (!transfer.is_done()) {
        if (pair.cluster->poll() == 0) {
          pair.cluster->clock.advance(1000);
        }
      }
      EXPECT_TRUE(transfer.is_right());
    }
  }
  return pair.cluster->clock.now_ns() - begin_ns;
}

LinkPair slow_pair(bool is_sampled) {
  std::vector<SimOptions> rails{wire(200), wire(200)};
  for (SimOptions& rail : rails) {
    rail.packet_bytes_max = 64 << 10;
  }
  LinkPair pair{rails};
  if (is_sampled) {
    pair.cluster->nodes[0]->sample_costs();
    pair.cluster->nodes[1]->sample_costs();
  }
  return pair;
}

TEST(SampledRails, LeaveMostOfTheTimeToMessages) {
  constexpr int kCount = 200;  // The sampling takes most of it.
  LinkPair without = slow_pair(false);
  LinkPair with = slow_pair(true);
  const auto alone_ns = static_cast<double>(ping_pong(without, 16 << 10, kCount));
  EXPECT_LT(static_cast<double>(ping_pong(with, 16 << 10, kCount)), 1.2 * alone_ns);

  LinkPair idle = slow_pair(true);
  const std::uint64_t begin_ns = idle.cluster->clock.now_ns();
  (void)ping_pong(idle, 8, 1);
  while (idle.cluster->nodes[0]->sampled_costs(7).size() < 3) {
    (void)idle.cluster->poll();
    idle.cluster->clock.advance(1000);
    ASSERT_LT(idle.cluster->clock.now_ns() - begin_ns, 1'000'000'000U);
  }
  std::uint64_t busy_ns = 0;
  for (const RailReport& rail : idle.cluster->nodes[0]->rails(1)) {
    busy_ns += rail.bytes * 5;  // One after the other.
  }
  EXPECT_GT(idle.cluster->clock.now_ns() - begin_ns, 3 * busy_ns);
}

/// The rails of a link, as far as they are known after so many messages of such a length.
std::vector<CostsEntry> sampled_beside(std::size_t bytes, int count) {
  LinkPair pair = slow_pair(true);
  std::vector<CostsEntry> sampled;
  for (int i = 0; i < count / 20 && sampled.size() < 2; ++i) {
    (void)ping_pong(pair, bytes, 20);
    sampled = pair.cluster->nodes[0]->sampled_costs(7);
  }
  std::erase_if(sampled, [](const CostsEntry& way) {
    return way.driver.find('+') != std::string::npos;  // The link as a whole.
  });
  for (const CostsEntry& rail : sampled) {
    EXPECT_NEAR(rail.costs.packet_ps_per_byte, 5000, 600) << rail.driver << ", " << bytes;
    EXPECT_NEAR(rail.costs.latency_ns, 20'500, 1500) << rail.driver << ", " << bytes;
  }
  return sampled;
}

TEST(SampledRails, AreKnownThoughMessagesComeInStepWithTheRounds) {
  EXPECT_EQ(sampled_beside(16 << 10, 1000).size(), 2U);
}

// A rail of which half is always full is hardly ever free on both ways: messages measure it.
TEST(SampledRails, AreRatherUnknownThanTakenForWhatMessagesMakeOfThem) {
  for (const std::size_t bytes : {24U << 10, 200U << 10, 512U << 10}) {
    (void)sampled_beside(bytes, 400);
  }
}

TEST(SampledRails, AreMeasuredOnceMessagesNoLongerFillThem) {
  LinkPair pair = slow_pair(true);
  LinkPair::Transfer stream{pair, 40 << 20};  // 0.1 s of both rails.
  const auto pass = [&] {
    if (pair.cluster->poll() == 0) {
      pair.cluster->clock.advance(1000);
    }
  };
  while (!stream.is_done()) {
    pass();
  }
  EXPECT_TRUE(stream.is_right());
  EXPECT_TRUE(pair.cluster->nodes[0]->sampled_costs(7).empty()) << "each round met messages";
  for (int i = 0; i < 1'000'000 && pair.cluster->nodes[0]->sampled_costs(7).size() < 3; ++i) {
    pass();
  }
  EXPECT_EQ(pair.cluster->nodes[0]->sampled_costs(7).size(), 3U);
}

}  // namespace
}  // namespace sterna::net
