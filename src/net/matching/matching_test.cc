// Matching compared with a naive model: two lists that are searched from the front, as MPI says it.
#include "net/matching/matching.h"

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "memory/heap.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kNoMask = ~std::uint32_t{0};

bool fits(const MaskedPattern& masked, const Envelope& envelope) {
  const Pattern& pattern = masked.pattern;
  const auto bits = [&](std::int32_t tag) { return static_cast<std::uint32_t>(tag) & masked.mask; };
  return pattern.context == envelope.context &&
         (pattern.source == kAnySource || pattern.source == envelope.source) &&
         (pattern.tag == kAnyTag || bits(pattern.tag) == bits(envelope.tag));
}

Message* find(Endpoint& endpoint, const MaskedPattern& pattern) {
  return pattern.mask == kNoMask ? find_message(endpoint, pattern.pattern)
                                 : find_message(endpoint, pattern);
}

bool post(Endpoint& endpoint, RecvRequest& request, const MaskedPattern& pattern) {
  if (pattern.mask == kNoMask) {
    return post_receive(endpoint, request, pattern.pattern);
  }
  post_masked(endpoint, request, pattern);
  return true;
}

/// Receives and messages are numbered as they come.
struct NaiveMatcher {
  struct Receive {
    MaskedPattern pattern;
    int number;
  };
  struct Arrived {
    Envelope envelope;
    int number;
  };
  std::list<Receive> receives;
  std::list<Arrived> messages;

  int post(const MaskedPattern& pattern, int number) {
    const auto found =
        std::ranges::find_if(messages, [&](const Arrived& m) { return fits(pattern, m.envelope); });
    if (found == messages.end()) {
      receives.push_back({pattern, number});
      return -1;
    }
    const int message = found->number;
    messages.erase(found);
    return message;
  }
  int arrive(const Envelope& envelope, int number) {
    const auto found =
        std::ranges::find_if(receives, [&](const Receive& r) { return fits(r.pattern, envelope); });
    if (found == receives.end()) {
      messages.push_back({envelope, number});
      return -1;
    }
    const int receive = found->number;
    receives.erase(found);
    return receive;
  }
};

class Matching : public testing::TestWithParam<std::uint64_t> {
 protected:
  Endpoint* endpoint_ = create_endpoint(*memory::Heap::process(), 0);
  ~Matching() override { destroy_endpoint(endpoint_); }
};

// The message's number travels in send_id, the receive's is its place in `requests`.
TEST_P(Matching, AgreesWithANaiveModel) {
  Random random{GetParam()};
  NaiveMatcher model;
  std::vector<std::unique_ptr<RecvRequest>> requests;
  const double wildcards = random.unit();
  const double masks = random.chance(0.5) ? 0.2 : 0;
  const std::uint64_t tags = 1 + random.below(100);
  for (int step = 0; step < 4000; ++step) {
    const auto context = static_cast<std::uint32_t>(random.below(3));
    const auto source = static_cast<std::uint32_t>(random.below(5));
    const auto tag = static_cast<std::int32_t>(random.below(tags));
    if (random.chance(0.5)) {
      const bool has_mask = random.chance(masks);
      const MaskedPattern pattern{
          {random.chance(wildcards) ? kAnySource : source, context,
           !has_mask && random.chance(wildcards) ? kAnyTag : tag},
          has_mask ? static_cast<std::uint32_t>(random.below(16)) : kNoMask};
      requests.push_back(std::make_unique<RecvRequest>());
      const int number = static_cast<int>(requests.size()) - 1;
      const int expected = model.post(pattern, number);
      Message* message = find(*endpoint_, pattern);
      ASSERT_EQ(message != nullptr ? static_cast<int>(message->send_id) : -1, expected);
      if (message != nullptr) {
        remove_message(*endpoint_, *message);
        free_message(*endpoint_, message);
      } else {
        ASSERT_TRUE(post(*endpoint_, *requests.back(), pattern));
      }
    } else {
      const Envelope envelope{source, context, tag, 8};
      const int expected = model.arrive(envelope, step);
      RecvRequest* receive = take_receive(*endpoint_, {source, context, tag});
      if (receive != nullptr) {
        ASSERT_GE(expected, 0);
        ASSERT_EQ(receive, requests[static_cast<std::size_t>(expected)].get());
      } else {
        ASSERT_EQ(expected, -1);
        Message* message = create_message(*endpoint_, random.below(300));
        message->envelope = envelope;
        message->send_id = static_cast<std::uint64_t>(step);
        ASSERT_TRUE(add_message(*endpoint_, *message));
      }
    }
    if (random.chance(0.02) && !model.receives.empty()) {  // Cancel one.
      auto victim = model.receives.begin();
      std::advance(victim, random.below(model.receives.size()));
      unpost_receive(*endpoint_, *requests[static_cast<std::size_t>(victim->number)]);
      model.receives.erase(victim);
    }
    if (step % 100 == 0) {
      check_matching(*endpoint_);
    }
  }
  check_matching(*endpoint_);
  for (const NaiveMatcher::Receive& receive : model.receives) {
    unpost_receive(*endpoint_, *requests[static_cast<std::size_t>(receive.number)]);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Matching, testing::Range<std::uint64_t>(1, 21));

TEST_F(Matching, LanesOfTagsThatAreOverAreUsedAgain) {
  for (std::int32_t tag = 0; tag < 100'000; ++tag) {
    RecvRequest request;
    ASSERT_TRUE(post_receive(*endpoint_, request, {1, 0, tag}));
    ASSERT_EQ(take_receive(*endpoint_, {1, 0, tag}), &request);
  }
  EXPECT_LE(endpoint_->lane_bucket_count, 64U);
}

/// Two kinds by turns are near; a third one takes the place of the one that was near longest.
TEST_F(Matching, ReceivesOfTwoKindsByTurnsAreFoundWithoutASearch) {
  const Pattern kinds[] = {{1, 0, 5}, {1, 0, 6}, {1, 0, 7}};
  RecvRequest requests[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(post_receive(*endpoint_, requests[i], kinds[i]));
  }
  EXPECT_EQ(find_near_lane(*endpoint_, kinds[0]), nullptr);
  EXPECT_NE(find_lane(*endpoint_, kinds[0]), nullptr);
  EXPECT_NE(find_lane(*endpoint_, kinds[1]), nullptr);
  for (int turn = 0; turn < 4; ++turn) {
    Lane* const near = find_near_lane(*endpoint_, kinds[turn % 2]);
    ASSERT_NE(near, nullptr);
    EXPECT_EQ(near->receives_first, &requests[turn % 2]);
    EXPECT_EQ(find_lane(*endpoint_, kinds[turn % 2]), near);
  }
  EXPECT_EQ(find_near_lane(*endpoint_, kinds[2]), nullptr);
  for (const int i : {1, 0, 2}) {
    EXPECT_EQ(take_receive(*endpoint_, kinds[i]), &requests[i]);
    EXPECT_EQ(take_receive(*endpoint_, kinds[i]), nullptr);
  }
  check_matching(*endpoint_);
}

}  // namespace
}  // namespace sterna::net
