// What a strategy is shown of the frames that wait, and that it can choose by it.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/test_waiting.h"

namespace sterna::net {
namespace {

/// Keeps what it saw last.
class Seeing final : public Strategy {
 public:
  std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> chosen) const noexcept override {
    seen.assign(waiting.begin(), waiting.end());
    chosen[0] = 0;
    return 1;
  }
  mutable std::vector<WaitingFrame> seen;
};

TEST(Strategies, SeeWhatWaitsByItsKindAndByTagAndContextWhereItIsOfAMessage) {
  const std::pair<FrameKind, Traffic> kinds[] = {{FrameKind::eager, Traffic::message},
                                                 {FrameKind::eager_more, Traffic::more},
                                                 {FrameKind::head, Traffic::head},
                                                 {FrameKind::rendezvous, Traffic::announcement},
                                                 {FrameKind::seek, Traffic::answer},
                                                 {FrameKind::nothing, Traffic::answer},
                                                 {FrameKind::claim, Traffic::answer},
                                                 {FrameKind::clear, Traffic::answer},
                                                 {FrameKind::data, Traffic::bulk},
                                                 {FrameKind::finish, Traffic::answer},
                                                 {FrameKind::matched, Traffic::answer},
                                                 {FrameKind::credit, Traffic::answer},
                                                 {FrameKind::rank_note, Traffic::rpc},
                                                 {FrameKind::node, Traffic::rpc},
                                                 {FrameKind::bulk, Traffic::bulk},
                                                 {FrameKind::bulk_finish, Traffic::bulk},
                                                 {FrameKind::moved, Traffic::control},
                                                 {FrameKind::sample, Traffic::control},
                                                 {FrameKind::sample_answer, Traffic::control},
                                                 {FrameKind::sample_result, Traffic::control}};
  ASSERT_EQ(std::size(kinds), std::size_t{kFrameKindLast});
  Waiting waiting;
  for (const auto& [kind, traffic] : kinds) {
    waiting.add(kHeaderBytes + 100, 1, kind);
  }
  const Seeing strategy;
  EXPECT_EQ(waiting.form(strategy, {4096, 1000}), (Tags{0}));
  ASSERT_EQ(strategy.seen.size(), std::size(kinds));
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    const WaitingFrame& frame = strategy.seen[i];
    EXPECT_EQ(frame.traffic, kinds[i].second) << i;
    EXPECT_LT(static_cast<unsigned>(frame.traffic), kTrafficCount);
    const bool is_of_message = frame.traffic <= Traffic::head;
    EXPECT_EQ(frame.tag, is_of_message ? static_cast<std::int32_t>(i) : 0) << i;
    EXPECT_EQ(frame.context, is_of_message ? 7U : 0U) << i;
    EXPECT_EQ(frame.message_bytes, is_of_message ? 100U : 0U) << i;
  }
}

/// Of traffic by tag: those of tag 5 go first, as far as they may pass.
TEST(Strategies, MayPreferATag) {
  class Preferring final : public Strategy {
    std::uint32_t form(std::span<const WaitingFrame> waiting, const PacketLimits& /*limits*/,
                       std::span<std::uint8_t> chosen) const noexcept override {
      chosen[0] = 0;
      for (std::uint8_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].tag == 5 && (i == 0 || waiting[i].may_pass)) {
          chosen[0] = i;
          break;
        }
      }
      return 1;
    }
  };
  Waiting waiting;
  for (std::uint32_t i = 0; i < 8; ++i) {
    waiting.add(100, i);
  }
  const Preferring strategy;
  EXPECT_EQ(waiting.form(strategy, {4096, 1000}), (Tags{5}));
  EXPECT_EQ(waiting.form(strategy, {4096, 1000}), (Tags{0}));
  EXPECT_EQ(waiting.broken_rule, "");
}

}  // namespace
}  // namespace sterna::net
