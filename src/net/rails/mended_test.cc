// Rails that break, fall silent or are busy with others' packets while messages go, and are whole
// again before these have all gone: the traffic comes back to them within the burst. On simulated
// rails, with the clock of the simulation.
#include <deque>
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kMbPerS = 25;  // Of each rail.

/// Messages one after the other, some of them at once, for as long as it is run.
struct Burst {
  Burst(const char* strategy, std::size_t message_bytes)
      : pair{{wire(kMbPerS), wire(kMbPerS)},
             {{"net_strategy", strategy}, {"net_eager_window", "1M"}}},
        bytes{message_bytes} {
    run(300 * kMs);
  }
  ~Burst() {
    for (const auto& message : messages) {
      pair.run(*message);
      EXPECT_TRUE(message->is_right());
    }
  }
  void run(std::uint64_t ns) {
    const std::uint64_t end_ns = time() + ns;
    while (time() < end_ns) {
      while (messages.size() < kAtOnce) {
        messages.push_back(std::make_unique<LinkPair::Transfer>(pair, bytes));
      }
      pair.run(*messages.front(), end_ns - time());
      if (messages.front()->is_done()) {
        EXPECT_TRUE(messages.front()->is_right());
        messages.pop_front();
      }
    }
  }
  /// Nothing goes for so long.
  void pause(std::uint64_t ns) {
    while (!messages.empty()) {
      pair.run(*messages.front());
      messages.pop_front();
    }
    pair.cluster->settle();
    pair.cluster->clock.advance(ns);
    pair.cluster->settle();
  }
  /// How much of what went in so long took the second rail.
  double share_of_second(std::uint64_t ns) {
    const auto before = pair.cluster->nodes[0]->rails(1);
    run(ns);
    const auto after = pair.cluster->nodes[0]->rails(1);
    const double first = double(after[0].bytes - before[0].bytes);
    const double second = double(after[1].bytes - before[1].bytes);
    return second / (first + second);
  }
  std::uint64_t time() { return pair.cluster->clock.now_ns(); }
  SimNetwork& second() { return *pair.cluster->networks[1]; }

  static constexpr std::size_t kAtOnce = 4;
  LinkPair pair;
  std::size_t bytes;
  std::deque<std::unique_ptr<LinkPair::Transfer>> messages;
};

class MendedRail : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {
 protected:
  /// What it takes of a burst while nothing is wrong with it.
  void SetUp() override {
    Burst whole = burst();
    usual = whole.share_of_second(100 * kMs);
    EXPECT_GT(usual, 0.15);
  }
  static Burst burst() { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
  /// At least half of its usual share.
  void expect_use(Burst& its, std::uint64_t within_ns, const std::string& what) const {
    its.run(within_ns);
    EXPECT_GT(its.share_of_second(100 * kMs), usual / 2) << what;
  }
  double usual = 0;
};
INSTANTIATE_TEST_SUITE_P(Short, MendedRail,
                         testing::Combine(testing::Values("auto", "split", "adaptive"),
                                          testing::Values(1000)));
// `urgent` gives short messages one rail, and long ones the others.
INSTANTIATE_TEST_SUITE_P(Long, MendedRail,
                         testing::Combine(testing::Values("auto", "split", "adaptive", "urgent"),
                                          testing::Values(256 << 10)));

TEST_P(MendedRail, ThatWasBrokenIsUsedAgain) {
  Burst its = burst();
  its.second().sever(0, 1);
  its.run(300 * kMs);
  its.second().mend(0, 1);
  expect_use(its, 500 * kMs, "a break of 0.3 s");
}

TEST_P(MendedRail, ThatWasSilentIsUsedAgain) {
  for (const std::uint64_t silence_ms : {20, 400, 1000}) {
    Burst its = burst();
    its.second().stall(0, 1, true);
    its.run(silence_ms * kMs);
    its.second().stall(0, 1, false);
    expect_use(its, 500 * kMs, std::to_string(silence_ms) + " ms");
  }
}

/// All that was known of it is old when its first packets get stuck: what they take is no figure of
/// the rail.
TEST_P(MendedRail, ThatWasSilentAfterAPauseIsUsedAgain) {
  for (const std::uint64_t silence_ms : {20, 400}) {
    Burst its = burst();
    its.pause(6000 * kMs);
    its.second().stall(0, 1, true);
    its.run(silence_ms * kMs);
    its.second().stall(0, 1, false);
    // It is tried after two seconds at the latest.
    expect_use(its, 2500 * kMs, std::to_string(silence_ms) + " ms");
  }
}

/// Others use it: packets go in one of ten milliseconds only.
TEST_P(MendedRail, ThatWasBusyIsUsedAgain) {
  Burst its = burst();
  for (int i = 0; i < 60; ++i) {
    its.second().stall(0, 1, true);
    its.run(9 * kMs);
    its.second().stall(0, 1, false);
    its.run(1 * kMs);
  }
  expect_use(its, 500 * kMs, "busy");
}

}  // namespace
}  // namespace sterna::net
