// The cost of matching in steps, not in time: lanes that are looked at for a message do not become
// more with the receives that are posted, nor with the ranks that they name.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "memory/heap.h"
#include "net/matching/steps.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 3;
constexpr std::uint32_t kLooks = 1000;  // Messages whose steps are counted.

/// An endpoint with receives posted, which goes without being asked for them.
struct Posted {
  ~Posted() {
    for (const auto& request : requests) {
      unpost_receive(*endpoint, *request);
    }
    destroy_endpoint(endpoint);
  }
  void post(const Pattern& pattern) {
    requests.push_back(std::make_unique<RecvRequest>());
    ASSERT_TRUE(post_receive(*endpoint, *requests.back(), pattern));
  }
  Endpoint* endpoint = create_endpoint(*memory::Heap::process(), 0);
  std::vector<std::unique_ptr<RecvRequest>> requests;
};

struct Cost {
  double mean = 0;
  std::uint32_t most = 0;
  std::uint32_t searches = 0;
};

/// Of messages for receives that are posted, drawn by chance.
template <typename Draw>
Cost cost_of(const Posted& posted, Draw draw) {
  Random random{7};
  Cost cost;
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kLooks; ++i) {
    const MatchingSteps steps = count_steps(*posted.endpoint, draw(random));
    sum += steps.lanes;
    cost.most = std::max(cost.most, steps.lanes);
    cost.searches = std::max(cost.searches, steps.searches);
  }
  cost.mean = static_cast<double>(sum) / kLooks;
  return cost;
}

/// `count` receives, each with a tag of its own, from `peers` ranks in turn.
Cost exact_cost(std::uint32_t count, std::uint32_t peers) {
  Posted posted;
  for (std::uint32_t i = 0; i < count; ++i) {
    posted.post({i % peers, kContext, static_cast<std::int32_t>(i / peers)});
  }
  return cost_of(posted, [&](Random& random) {
    const auto i = static_cast<std::uint32_t>(random.below(count));
    return Pattern{i % peers, kContext, static_cast<std::int32_t>(i / peers)};
  });
}

TEST(MatchingSteps, AHundredThousandReceivesCostWhatTenDo) {
  for (const std::uint32_t count : {10U, 1000U, 100'000U}) {
    const Cost cost = exact_cost(count, 2);
    EXPECT_EQ(cost.searches, 1U) << count;
    EXPECT_LE(cost.mean, 2.0) << count;  // One lane a bucket at most, evenly spread: 1.5.
    EXPECT_LE(cost.most, 12U) << count;
  }
}

TEST(MatchingSteps, AThousandPeersCostWhatTwoDo) {
  for (const std::uint32_t peers : {2U, 10U, 1000U}) {
    const Cost cost = exact_cost(100'000, peers);
    EXPECT_EQ(cost.searches, 1U) << peers;
    EXPECT_LE(cost.mean, 2.0) << peers;
    EXPECT_LE(cost.most, 12U) << peers;
  }
}

/// All for one sender, context and tag: one lane, of which the first is taken.
TEST(MatchingSteps, ReceivesOfOneKindAreOneLane) {
  Posted posted;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    posted.post({1, kContext, 5});
  }
  const Cost cost = cost_of(posted, [](Random&) { return Pattern{1, kContext, 5}; });
  EXPECT_EQ(cost.most, 1U);
}

/// Receives from any rank or with any tag are lanes of their own: a message looks for one of each
/// of the four classes that are posted, whatever their number.
TEST(MatchingSteps, MixturesOfAnySourceAndAnyTagCostFourSearchesAtMost) {
  for (const std::uint32_t count : {12U, 100'000U}) {
    Posted posted;
    const std::uint32_t peers = std::min(count, 1000U);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto tag = static_cast<std::int32_t>(i / 4);
      posted.post({i % 4 == 1 || i % 4 == 3 ? kAnySource : i % peers, kContext,
                   i % 4 >= 2 ? kAnyTag : tag});
    }
    const Cost cost = cost_of(posted, [&](Random& random) {
      return Pattern{static_cast<std::uint32_t>(random.below(peers)), kContext,
                     static_cast<std::int32_t>(random.below(count / 4))};
    });
    EXPECT_EQ(cost.searches, 4U) << count;
    EXPECT_LE(cost.mean, 8.0) << count;
    EXPECT_LE(cost.most, 24U) << count;
  }
}

/// What is said of lanes does not hold for receives that compare some bits of the tag: they are
/// walked, all of them in the worst case. Others that are posted beside them add nothing.
TEST(MatchingSteps, ReceivesWithAMaskAreWalkedAndOthersAddNothing) {
  for (const std::uint32_t others : {10U, 100'000U}) {
    Posted posted;
    for (std::uint32_t i = 0; i < others; ++i) {
      posted.post({i % 1000, kContext, static_cast<std::int32_t>(i)});
    }
    constexpr std::uint32_t kMasked = 50;
    for (std::uint32_t i = 0; i < kMasked; ++i) {
      posted.requests.push_back(std::make_unique<RecvRequest>());
      post_masked(*posted.endpoint, *posted.requests.back(),
                  MaskedPattern{{kAnySource, kContext, 1}, 1});
    }
    const MatchingSteps even = count_steps(*posted.endpoint, {5000, kContext, 2});
    EXPECT_EQ(even.masked, kMasked) << "none of them fits: all are looked at";
    const MatchingSteps odd = count_steps(*posted.endpoint, {5000, kContext, 3});
    EXPECT_EQ(odd.masked, 1U);
    EXPECT_LE(even.lanes, 24U) << others;
  }
}

/// What is known of a rank that one exchanges messages with is found in as many steps among 1000 as
/// among two.
TEST(MatchingSteps, PeersAreFoundAtOnce) {
  for (const std::uint32_t peers : {2U, 1000U}) {
    Posted posted;
    for (std::uint32_t rank = 0; rank < peers; ++rank) {
      ASSERT_NE(make_peer(*posted.endpoint, rank), nullptr);
    }
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < posted.endpoint->peer_bucket_count; ++i) {
      std::uint32_t depth = 0;
      for (const Peer* peer = posted.endpoint->peers[i]; peer != nullptr;
           peer = peer->next_in_bucket) {
        ++depth;
      }
      most = std::max(most, depth);
    }
    EXPECT_EQ(most, 1U) << peers;
  }
}

/// A program that counts its tags up leaves empty lanes behind: they are swept, and cost nothing.
TEST(MatchingSteps, TagsThatAreNeverUsedAgainCostNothing) {
  Posted posted;
  posted.post({1, kContext, 1});
  for (std::int32_t tag = 2; tag < 100'000; ++tag) {
    RecvRequest request;
    ASSERT_TRUE(post_receive(*posted.endpoint, request, {1, kContext, tag}));
    ASSERT_EQ(take_receive(*posted.endpoint, {1, kContext, tag}), &request);
  }
  EXPECT_LE(count_steps(*posted.endpoint, {1, kContext, 1}).lanes, 12U);
  EXPECT_LE(posted.endpoint->lane_count, 64U);
}

}  // namespace
}  // namespace sterna::net
