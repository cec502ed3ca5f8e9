// One end of a link: what it tells its peer, and two packets that are sent at once.
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/function_ref.h"
#include "net/rails/link_end.h"
#include "net/rails/plan.h"

namespace sterna::net {
namespace {

/// A worker without work, on a kernel thread of its own.
struct Idle {
  explicit Idle(End& end) : hand_over{end.hand_over} {
    hand_over.serve([](void* side) noexcept { (void)static_cast<SideWork*>(side)->help(); },
                    &end.side);
    hand_over.begin_search();
    thread = std::thread{[this] {
      while (!is_over) {
        hand_over.take();
        std::this_thread::yield();
      }
    }};
  }
  ~Idle() {
    is_over = true;
    thread.join();
    hand_over.end_search();
    hand_over.stop();
  }
  threads::HandOver& hand_over;
  std::atomic<bool> is_over{false};
  std::thread thread;
};

TEST(LinkEnd, LendsIfItIsSaidToOverRailsThatDo) {
  End end{2};
  const Capabilities each[2] = {end.wires[0].capabilities(), end.wires[1].capabilities()};
  ASSERT_TRUE(each[0].can_lend);
  const bool does_lend = end.link->lent_bytes_max() != 0;
  EXPECT_EQ(link_capabilities(each).can_lend, does_lend);
  const WayDriver rails[2] = {{"one", each[0], true}, {"two", {.direct_mb_per_s = 9}, true}};
  EXPECT_EQ(tell_link_copies(rails, true).find("zero copy of messages that are lent"), 0U);
  EXPECT_EQ(tell_link_copies(rails, false),
            "no zero copy: packets of messages are copied, and kept until they are known to have "
            "come; without a link long ones would be lent, with no copy, by one; without a link "
            "long ones would be copied directly, once, by two");
}

TEST(LinkEnd, AnAcknowledgementThatFoundNoRoomGoesLater) {
  End end;
  end.take(LinkKind::data, 0);
  end.wires[0].state = SendState::full;
  end.step_after(1'000'000);
  EXPECT_FALSE(end.link->is_quiet());
  end.wires[0].state = SendState::accepted;
  EXPECT_NE(end.link->due_ns(), kNever);
  end.step_after(2'000'000);
  EXPECT_EQ(end.acks(1), 1U);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, DataThatFoundNoRoomHasToldNothing) {
  End end;
  end.take(LinkKind::data, 0);
  end.wires[0].state = SendState::full;
  EXPECT_EQ(end.send(), SendState::full);
  end.wires[0].state = SendState::accepted;
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1), 1U);
}

TEST(LinkEnd, WhatCameWhileItWasToldIsToldToo) {
  End end;
  end.take(LinkKind::data, 0);
  const auto take_one = [&] { end.take(LinkKind::data, 1); };
  const FunctionRef<void()> meanwhile = take_one;
  end.wires[0].meanwhile = &meanwhile;
  EXPECT_EQ(end.send(), SendState::accepted);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(2), 1U);
}

TEST(LinkEnd, WhatABrokenRailWasToTellTheOthersTell) {
  End end{2};
  end.take(LinkKind::data, 0, 0);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 0), 1U);
  end.link->lose_rail(0, "the test says so");
  end.wires[0].state = SendState::full;
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 1), 1U);
}

TEST(LinkEnd, APacketThatComesAgainIsAcknowledgedByTheRailItTook) {
  End end{2};
  end.take(LinkKind::data, 0, 0);
  end.step_after(1'000'000);  // This news stays in a rail that is silent, which only the peer sees.
  end.take(LinkKind::data, 0, 1);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 1), 1U);
}

TEST(LinkEnd, APeerThatIsLostWhileAPacketGoesLeavesNothingBehind) {
  for (const SendState state : {SendState::accepted, SendState::full, SendState::closed}) {
    End end;
    EXPECT_EQ(end.send(), SendState::accepted);
    end.wires[0].state = state;
    end.shared.options.reconnect_ns = 0;
    const auto lose = [&] { end.link->lose_rail(0, "the test says so"); };
    const FunctionRef<void()> meanwhile = lose;
    end.wires[0].meanwhile = &meanwhile;
    EXPECT_EQ(end.send(), state == SendState::accepted ? state : SendState::closed);
    EXPECT_EQ(end.send(), SendState::closed);
    end.step_after(1);
    EXPECT_TRUE(end.link->is_quiet());
  }
}

using Data = std::set<std::pair<std::uint32_t, int>>;

TEST(LinkEnd, TwoPacketsAreSentByTwoThreadsAtOnce) {
  End end{2};
  const Idle idle{end};
  std::atomic<int> begun{0};
  std::atomic<bool> were_both{true};
  const auto wait_for_other = [&] {
    ++begun;
    for (int i = 0; begun < 2; ++i) {
      if (i == 20'000) {
        were_both = false;  // The other is not sent before this one is: nothing is at once.
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  };
  const FunctionRef<void()> meanwhile = wait_for_other;
  end.wires[0].meanwhile = end.wires[1].meanwhile = &meanwhile;
  const Link::Two two = end.send_two();
  EXPECT_TRUE(were_both);
  EXPECT_TRUE(two.was_beside);
  EXPECT_EQ(two.states[0], SendState::accepted);
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
  end.acknowledge(2);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, WhereNobodyIsIdleBothAreSentByTheirSender) {
  End end{2};
  const Link::Two two = end.send_two();
  EXPECT_FALSE(two.was_beside);
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
}

TEST(LinkEnd, OfTwoPacketsThatWhichARailRefusesTakesTheOther) {
  for (const std::size_t refusing : {0U, 1U}) {
    for (const bool is_any_idle : {false, true}) {
      End end{2};
      const std::unique_ptr<Idle> idle = is_any_idle ? std::make_unique<Idle>(end) : nullptr;
      end.wires[refusing].state = SendState::full;
      const Link::Two two = end.send_two();
      EXPECT_EQ(two.states[0], SendState::accepted);
      EXPECT_EQ(two.states[1], SendState::accepted);
      EXPECT_EQ(end.data(1 - refusing), (Data{{0, 1}, {1, 2}}));
      end.acknowledge(2);
      EXPECT_TRUE(end.link->is_quiet());
    }
  }
}

TEST(LinkEnd, WhatLeftBeforeItsRailWasHeardIsNoMeasure) {
  End end{2};
  const auto sent_and_echoed_after = [&](std::uint32_t sequence, std::uint64_t ns) {
    EXPECT_EQ(end.send(), SendState::accepted);
    end.clock.advance(ns);
    LinkHeader header;
    header.kind = LinkKind::ack;
    header.flags = kLinkHasExpected;
    header.expected = sequence + 1;
    header.echo = sequence;
    (void)end.link->take(0, std::as_bytes(std::span{&header, 1}));
    return end.link->report()[0].round_trip_ns;
  };
  const std::uint64_t expected_ns = end.link->report()[0].round_trip_ns;
  EXPECT_EQ(sent_and_echoed_after(0, 600'000), expected_ns) << "the peer had yet to take the way";
  EXPECT_EQ(sent_and_echoed_after(1, 300'000), 300'000U);
}

TEST(LinkEnd, TwoPacketsThatNoRailTakesLeaveNothingBehind) {
  End end{2};
  end.wires[0].state = end.wires[1].state = SendState::full;
  const Link::Two two = end.send_two();
  EXPECT_EQ(two.states[0], SendState::full);
  EXPECT_EQ(two.states[1], SendState::full);
  EXPECT_TRUE(end.link->is_quiet());
  end.wires[0].state = end.wires[1].state = SendState::accepted;
  EXPECT_EQ(end.send(), SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 0}})) << "the first number is still free";
}

TEST(LinkEnd, TheFirstOfTwoThatNoRailTakesWhileTheSecondGoesIsSentAgain) {
  End end{2};
  end.wires[0].state = SendState::full;
  const auto close_other = [&] { end.wires[1].state = SendState::full; };
  const FunctionRef<void()> second_time = close_other;
  const auto once_more = [&] { end.wires[0].meanwhile = &second_time; };
  const FunctionRef<void()> first_time = once_more;
  end.wires[0].meanwhile = &first_time;
  const Link::Two two = end.send_two();
  EXPECT_EQ(two.states[0], SendState::accepted) << "the link keeps it";
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
  end.wires[0].state = SendState::accepted;
  end.step_after(1'000'000);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  end.acknowledge(2);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, APeerThatIsLostWhileTwoPacketsGoLeavesNothingBehind) {
  for (const SendState state : {SendState::accepted, SendState::full, SendState::closed}) {
    for (const std::size_t at : {0U, 1U}) {
      End end{2};
      end.wires[at].state = state;
      end.shared.options.reconnect_ns = 0;
      const auto lose = [&] {
        end.link->lose_rail(0, "the test says so");
        end.link->lose_rail(1, "the test says so");
      };
      const FunctionRef<void()> meanwhile = lose;
      end.wires[at].meanwhile = &meanwhile;
      (void)end.send_two();
      EXPECT_EQ(end.send(), SendState::closed);
      end.step_after(1);
      EXPECT_TRUE(end.link->is_quiet());
    }
  }
}

/// Of all choices of rails the same.
class Fixed final : public Strategy {
 public:
  explicit Fixed(std::uint32_t rail) : rail_{rail} {}
  std::uint32_t form(std::span<const WaitingFrame> /*waiting*/, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> /*chosen*/) const noexcept override {
    return 0;
  }
  std::uint32_t choose_rail(std::span<const RailView> /*rails*/,
                            std::uint32_t /*bytes*/) const noexcept override {
    return rail_;
  }

 private:
  const std::uint32_t rail_;
};

TEST(LinkEnd, AStrategyThatChoosesNoRailThatCouldBeHoldsUpNothingAndIsToldOfOnce) {
  for (const std::uint32_t said : {99U, kNoRail}) {
    const Fixed strategy{said};
    End end{2};
    std::atomic<bool> is_told{false};
    end.shared.strategy = &strategy;
    end.shared.is_choice_told = &is_told;
    testing::internal::CaptureStderr();
    for (std::uint32_t i = 1; i <= 3; ++i) {
      EXPECT_EQ(end.send(), SendState::accepted);
      end.acknowledge(i);
    }
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(end.data(0).size(), 3U) << said;
    EXPECT_EQ(told.find("the network strategy breaks a rule"),
              told.rfind("the network strategy breaks a rule"));
    EXPECT_NE(told.find("packets take the first rail with room"), std::string::npos) << told;
    EXPECT_TRUE(end.link->is_quiet());
  }
}

TEST(LinkEnd, ARailThatIsBusyGetsLessThanOneThatIsIdle) {
  const std::vector<std::byte> zeros(3000);
  const Piece piece = zeros;
  for (const bool is_busy : {false, true}) {
    End end{2};
    end.link->know(0, {.latency_ns = 1000, .packet_ns = 10, .packet_ps_per_byte = 1000});
    end.link->know(1, {.latency_ns = 1000, .packet_ns = 10, .packet_ps_per_byte = 4000});
    for (std::uint32_t i = 1; i <= 10; ++i) {
      EXPECT_EQ(end.link->try_send({&piece, 1}), SendState::accepted);
      if (!is_busy) {
        end.acknowledge(i);
      }
    }
    EXPECT_EQ(end.data(1).size(), is_busy ? 2U : 0U) << "it is a fourth as fast";
  }
}

TEST(LinkEnd, NewsOfWhatIsStillToBeSentHarmsNothing) {
  for (const bool is_hole : {false, true}) {
    End end{2};
    end.wires[0].state = end.wires[1].state = SendState::full;
    const auto lie = [&] {
      if (is_hole) {
        end.acknowledge_behind(0);
      } else {
        end.acknowledge(2);
      }
    };
    const FunctionRef<void()> meanwhile = lie;
    end.wires[0].meanwhile = &meanwhile;
    (void)end.send_two();
    end.wires[0].state = end.wires[1].state = SendState::accepted;
    end.step_after(1'000'000);
    EXPECT_EQ(end.send(), SendState::accepted);
    end.acknowledge(3);
    EXPECT_EQ(end.send(), SendState::accepted);
  }
}

}  // namespace
}  // namespace sterna::net
