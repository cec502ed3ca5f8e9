// One end of a link whose rails refuse packets, break, connect anew or are silent.
#include <gtest/gtest.h>

#include "net/rails/link_end.h"

namespace sterna::net {
namespace {

TEST(LinkEnd, ADriverThatRefusesPacketsBeforeItTellsOfALossHasNotEnded) {
  for (const bool revives : {true, false}) {
    End end;
    EXPECT_EQ(end.send(), SendState::accepted);
    end.wires[0].state = SendState::closed;
    end.wires[0].revives = revives;
    EXPECT_NE(end.send(), SendState::accepted);
    for (int i = 0; i < 10; ++i) {
      end.step_after(250'000'000);
    }
    end.link->lose_rail(0, "the test says so, late");
    end.wires[0] = Wire{};
    end.step_after(1'000'000);
    EXPECT_EQ(end.data(0).size(), 1U) << "it is sent again";
    EXPECT_EQ(end.send(), SendState::accepted);
  }
}

TEST(LinkEnd, ADriverThatRefusesPacketsAndNeverTellsWhyIsLostInTheEnd) {
  End end;
  EXPECT_EQ(end.send(), SendState::accepted);
  end.wires[0].state = SendState::closed;
  EXPECT_NE(end.send(), SendState::accepted);
  std::string why;
  for (int i = 0; i < 250 && !end.link->is_lost(why); ++i) {
    end.step_after(100'000'000);
  }
  EXPECT_TRUE(end.link->is_lost(why));
}

TEST(LinkEnd, ADriverThatWasClosedInGoodOrderHasEnded) {
  for (const Errc refusal : {Errc::closed, Errc::unsupported}) {
    End end;
    EXPECT_EQ(end.send(), SendState::accepted);
    end.wires[0].state = SendState::closed;
    end.wires[0].revives = false;
    end.wires[0].refusal = refusal;
    EXPECT_NE(end.send(), SendState::accepted);
    end.step_after(250'000'000);
    EXPECT_EQ(end.send(), SendState::closed);
    EXPECT_TRUE(end.link->is_quiet());
    std::string why;
    EXPECT_FALSE(end.link->is_lost(why));
  }
}

TEST(LinkEnd, ARailIsUpOnceItHasAnsweredAQuestionThatWasAskedSince) {
  End end{2};
  end.link->lose_rail(0, "the test says so");
  end.step_after(1'000'000);
  EXPECT_EQ(end.state_of(), "connecting");
  end.take(LinkKind::answer, 0);
  EXPECT_EQ(end.state_of(), "connecting") << "of nothing that was asked";
  for (int i = 0; i < 5; ++i) {
    end.step_after(100'000'000);
  }
  end.take(LinkKind::answer, 7);
  EXPECT_EQ(end.state_of(), "connecting") << "of nothing that was asked";
  end.take(LinkKind::answer, 2);  // The way there and back is longer than the pause.
  EXPECT_EQ(end.state_of(), "up");
  end.link->lose_rail(0, "the test says so");
  end.step_after(1'000'000);
  end.take(LinkKind::answer, 3);
  EXPECT_EQ(end.state_of(), "connecting") << "of what the connection before was asked";
}

TEST(LinkEnd, WhatIsSentOverARailThatConnectsAnewIsNoReasonToCountItAsAWay) {
  End end{2};
  std::string why;
  for (int i = 0; i < 20 && !end.link->is_lost(why); ++i) {  // Each is lost again after a second.
    end.link->lose_rail(static_cast<std::uint16_t>(i % 2), "nobody answers");
    end.step_after(1'000'000'000);
  }
  EXPECT_TRUE(end.link->is_lost(why));
  EXPECT_EQ(why, "nobody answers");
}

TEST(LinkEnd, WhatIsDueSoonerThanThePollerKnowsWakesIt) {
  End end{2};
  end.wires[1].revives = false;
  end.link->lose_rail(1, "the test says so");
  for (int i = 0; i < 8; ++i) {
    end.step_after(2'000'000'000);  // The pauses between two tries grow.
  }
  const std::uint64_t pause_ns = end.link->due_ns() - end.clock.now_ns();
  ASSERT_EQ(pause_ns, 2'000'000'000U);
  end.wakes = 0;
  EXPECT_EQ(end.send(), SendState::accepted);
  EXPECT_LT(end.link->due_ns() - end.clock.now_ns(), pause_ns);
  EXPECT_EQ(end.wakes, 1);
  EXPECT_EQ(end.send(), SendState::accepted);
  EXPECT_EQ(end.wakes, 1) << "it is due no sooner";
}

}  // namespace
}  // namespace sterna::net
