// Strategies: the contract of all of them, what each is for, and what becomes of one that breaks a
// rule.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/packets/test_waiting.h"
#include "net/rails/choice.h"

namespace sterna::net {
namespace {

const Strategy& named(std::string_view name) {
  return *find_strategy(name).value();
}

TEST(Strategies, SendEachFrameOnceAndThoseOfAFlowInOrder) {
  for (const StrategyEntry* entry : builtin_strategies()) {
    Waiting waiting;
    Random random{5};
    std::vector<std::uint32_t> source_of;
    for (int i = 0; i < 500; ++i) {
      source_of.push_back(static_cast<std::uint32_t>(random.below(7)));
      waiting.add(kHeaderBytes +
                      static_cast<std::uint32_t>(1 + random.below(random.chance(0.5) ? 100 : 4000)),
                  source_of.back());
    }
    std::vector<std::int32_t> last(7, -1);
    std::size_t frames = 0;
    std::size_t packets = 0;
    for (; waiting.frames.first != nullptr; ++packets) {
      for (const std::int32_t tag : waiting.form(*entry->strategy, {4096, 1024})) {
        std::int32_t& before = last[source_of[static_cast<std::size_t>(tag)]];
        EXPECT_LT(before, tag) << entry->name;
        before = tag;
        ++frames;
      }
      ASSERT_EQ(waiting.broken_rule, "") << entry->name;
    }
    EXPECT_EQ(waiting.frames.last, nullptr);
    EXPECT_EQ(frames, 500U) << entry->name;
    EXPECT_EQ(packets < frames, entry->name != "direct" && entry->name != "urgent");
    EXPECT_NE(entry->strategy->explain({4096, 1024}), "") << entry->name;
  }
}

TEST(Strategies, AutoSharesPacketsWhereTheCostModelSaysThatItGains) {
  const auto formed = [&](std::string_view name, std::uint32_t share_bytes) {
    Waiting waiting;
    for (const std::uint32_t bytes : {100, 100, 500}) {
      waiting.add(bytes);
    }
    return waiting.form(named(name), {4096, share_bytes}).size();
  };
  EXPECT_EQ(formed("auto", 40), 1U);  // As direct.
  EXPECT_EQ(formed("auto", 99), 1U);
  EXPECT_EQ(formed("auto", 100), 2U);
  EXPECT_EQ(formed("auto", 500), 3U);
  EXPECT_EQ(formed("aggregate", 40), 2U);  // Whatever the model says.
  EXPECT_EQ(formed("aggregate", 500), 3U);
  EXPECT_EQ(formed("direct", 500), 1U);
}

TEST(Strategies, SmallFramesOfOtherFlowsAreGatheredPastALargeOne) {
  Waiting waiting;
  waiting.add(100, 1);
  waiting.add(4000, 2);
  waiting.add(100, 2);  // Of the large one's flow: it stays behind.
  waiting.add(100, 3);
  waiting.add(100, 1, FrameKind::node);  // Keeps its place, and whatever comes later stays behind.
  waiting.add(100, 1);
  EXPECT_EQ(waiting.form(named("aggregate"), {4096, 1000}), (Tags{0, 3}));
  EXPECT_EQ(waiting.form(named("aggregate"), {4096, 1000}), (Tags{1}));
  EXPECT_EQ(waiting.form(named("aggregate"), {4096, 1000}), (Tags{2, 4, 5}));
}

TEST(Strategies, UrgentSendsTheHighestPriorityFirstAndTheShortBeforeTheLong) {
  Waiting waiting;
  waiting.add(9000, 1);
  waiting.add(9000, 2);
  waiting.add(100, 3);
  waiting.add(9000, 4, FrameKind::eager, 5);
  Tags order;
  while (waiting.frames.first != nullptr) {
    order.push_back(waiting.form(named("urgent"), {16384, 1000}).front());
  }
  EXPECT_EQ(order, (Tags{3, 2, 0, 1}));
}

TEST(Strategies, NoFrameWaitsForMoreThanSixteenPackets) {
  Waiting waiting;
  waiting.add(9000, 1);
  for (int i = 0; i < 40; ++i) {
    waiting.add(100, 2, FrameKind::eager, 9);
  }
  int packets = 0;
  while (waiting.form(named("urgent"), {16384, 1000}).front() != 0) {
    ++packets;
  }
  EXPECT_EQ(packets, 16);
}

TEST(Strategies, APacketThatFoundNoRoomHasPassedNobody) {
  Waiting waiting;
  waiting.add(9000, 1);
  for (int i = 0; i < 40; ++i) {
    waiting.add(100, 2, FrameKind::eager, 9);
  }
  for (int packets = 0; packets < 16; ++packets) {
    for (int tries = 0; tries < 5; ++tries) {
      Formed refused;
      form_packet(waiting.frames, named("urgent"), {16384, 1000}, waiting.passed_over, refused);
    }
    EXPECT_NE(waiting.form(named("urgent"), {16384, 1000}).front(), 0);
  }
  Formed refused;
  form_packet(waiting.frames, named("urgent"), {16384, 1000}, waiting.passed_over, refused);
  EXPECT_EQ(waiting.form(named("urgent"), {16384, 1000}).front(), 0) << "nor was it its turn";
}

/// Chooses what it is told.
class Told final : public Strategy {
 public:
  explicit Told(std::vector<std::uint8_t> places) : places_{std::move(places)} {}
  std::uint32_t form(std::span<const WaitingFrame> /*waiting*/, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> chosen) const noexcept override {
    std::copy(places_.begin(), places_.end(), chosen.begin());
    return static_cast<std::uint32_t>(places_.size());
  }

 private:
  std::vector<std::uint8_t> places_;
};

TEST(Strategies, AChoiceThatBreaksARuleIsReplacedByTheFirstFrame) {
  const auto broken = [](std::vector<std::uint8_t> places) {
    Waiting waiting;
    waiting.add(3000, 1);
    waiting.add(3000, 2);
    waiting.add(100, 1, FrameKind::node);
    const Tags tags = waiting.form(Told{std::move(places)}, {4096, 1000});
    return waiting.broken_rule.empty() ? std::string{"kept"}
           : tags == Tags{0}           ? waiting.broken_rule
                                       : std::string{"not replaced"};
  };
  EXPECT_EQ(broken({0}), "kept");
  EXPECT_EQ(broken({1}), "kept");
  EXPECT_EQ(broken({}), "it chooses one frame at least");
  EXPECT_EQ(broken({2}), "it passes frames that it may not pass");
  EXPECT_EQ(broken({0, 1}), "its frames fit one packet");
  EXPECT_EQ(broken({1, 0}), "places ascend, and are of frames that wait");
  EXPECT_EQ(broken({0, 0}), "places ascend, and are of frames that wait");
  EXPECT_EQ(broken({0, 3}), "places ascend, and are of frames that wait");
  EXPECT_EQ(broken(std::vector<std::uint8_t>(4)), "it chooses one frame at least");
}

/// Says always the same.
class Fixed final : public Strategy {
 public:
  explicit Fixed(std::uint32_t rail) : rail_{rail} {}
  std::uint32_t form(std::span<const WaitingFrame> /*waiting*/, const PacketLimits& /*limits*/,
                     std::span<std::uint8_t> chosen) const noexcept override {
    chosen[0] = 0;
    return 1;
  }
  std::uint32_t choose_rail(std::span<const RailView> /*rails*/,
                            std::uint32_t /*bytes*/) const noexcept override {
    return rail_;
  }

 private:
  const std::uint32_t rail_;
};

TEST(Strategies, ARailThatCannotBeIsReplacedByTheFirstWithRoom) {
  using Choice = std::pair<std::uint32_t, std::string>;
  const auto choice = [](std::uint32_t said, std::span<const RailView> rails) {
    const RailChoice checked = checked_rail(Fixed{said}, rails, 100);
    return Choice{checked.rail, checked.broken_rule != nullptr ? checked.broken_rule : ""};
  };
  const std::string is_shown = "a rail it chooses is one of those it is shown";
  const std::string has_room = "a rail it chooses has room";
  const std::string is_any = "it chooses a rail where all are free and nothing is on its way";
  std::array<RailView, 3> rails{};
  rails[0] = {.is_up = false};
  rails[1] = rails[2] = {.has_room = true};
  EXPECT_EQ(choice(2, rails), (Choice{2, ""}));
  EXPECT_EQ(choice(99, rails), (Choice{1, is_shown}));
  EXPECT_EQ(choice(0, rails), (Choice{1, has_room}));
  EXPECT_EQ(choice(kNoRail, rails), (Choice{1, is_any}));
  rails[2].in_flight_bytes = 1;  // It may wait for that.
  EXPECT_EQ(choice(kNoRail, rails), (Choice{kNoRail, ""}));
  EXPECT_EQ(choice(99, rails), (Choice{1, is_shown}));
  rails[2] = {.has_room = false};  // Its driver is full.
  EXPECT_EQ(choice(kNoRail, rails), (Choice{kNoRail, ""}));
  EXPECT_EQ(choice(2, rails), (Choice{1, has_room}));
  rails[1].has_room = false;
  EXPECT_EQ(choice(2, rails), (Choice{kNoRail, ""}));
  EXPECT_EQ(choice(99, rails), (Choice{kNoRail, is_shown}));
  EXPECT_EQ(choice(kNoRail, rails), (Choice{kNoRail, ""}));
}

TEST(Strategies, NoneLetsAPacketWaitWhereAllRailsAreFree) {
  Random random{7};
  for (const StrategyEntry* const entry : builtin_strategies()) {
    for (int i = 0; i < 200; ++i) {
      std::array<RailView, 3> rails{};
      for (RailView& rail : rails) {
        const bool is_up = &rail == rails.data() || random.chance(0.7);
        rail = {.is_up = is_up,
                .has_room = is_up,
                .latency_ns = 1000 + random.below(100'000),
                .profile_ps_per_byte = 100 + random.below(10'000),
                .measured_ps_per_byte = random.below(2) * (100 + random.below(10'000)),
                .sent_bytes = random.below(1'000'000)};
      }
      const RailChoice choice = checked_rail(*entry->strategy, rails, 1000);
      EXPECT_NE(choice.rail, kNoRail) << entry->name;
      EXPECT_EQ(choice.broken_rule, nullptr) << entry->name << ": " << choice.broken_rule;
    }
  }
}

TEST(Strategies, SplitKeepsTheRatioOfTheRates) {
  std::array<RailView, 3> rails{};
  const std::uint64_t ps[] = {1000, 2000, 10'000};
  for (std::size_t i = 0; i < rails.size(); ++i) {
    rails[i] = {.has_room = true, .latency_ns = 1000, .profile_ps_per_byte = ps[i]};
  }
  for (int i = 0; i < 1600; ++i) {
    const std::uint32_t rail = named("split").choose_rail(rails, 1000);
    ASSERT_LT(rail, rails.size());
    rails[rail].sent_bytes += 1000;
  }
  EXPECT_NEAR(static_cast<double>(rails[0].sent_bytes), 1e6, 2e4);
  EXPECT_NEAR(static_cast<double>(rails[1].sent_bytes), 5e5, 2e4);
  EXPECT_NEAR(static_cast<double>(rails[2].sent_bytes), 1e5, 2e4);
  rails[0].in_flight_bytes = 1 << 20;  // Busy with others' packets.
  EXPECT_EQ(named("split").choose_rail(rails, 1000), 1U);
}

TEST(Strategies, UrgentKeepsTheQuickestRailForShortPackets) {
  std::array<RailView, 2> rails{};
  rails[0] = {.has_room = true, .latency_ns = 50'000, .profile_ps_per_byte = 1000};
  rails[1] = {.has_room = true, .latency_ns = 2000, .profile_ps_per_byte = 1000};
  EXPECT_EQ(named("urgent").choose_rail(rails, 100), 1U);
  EXPECT_EQ(named("urgent").choose_rail(rails, 60'000), 1U);
  rails[1].in_flight_bytes = 60'000;
  EXPECT_EQ(named("urgent").choose_rail(rails, 60'000), 0U);
  EXPECT_EQ(named("urgent").choose_rail(rails, 100), 1U);
  rails[1].has_room = false;
  EXPECT_EQ(named("urgent").choose_rail(rails, 100), 0U);
}

TEST(Strategies, AdaptiveTriesARailThatNothingIsKnownOf) {
  std::array<RailView, 2> rails{};
  rails[0] = {.has_room = true, .latency_ns = 1000, .measured_ps_per_byte = 1000};
  rails[1] = {.has_room = true, .latency_ns = 1'000'000, .profile_ps_per_byte = 100'000};
  int tries = 0;
  for (; named("adaptive").choose_rail(rails, 1000) == 1; ++tries) {
    rails[1].sent_bytes += 1000;
  }
  EXPECT_EQ(tries, 8);
  rails[1].measured_ps_per_byte = 10;  // It was better than its profile.
  rails[1].latency_ns = 500;
  EXPECT_EQ(named("adaptive").choose_rail(rails, 1000), 1U);
}

TEST(Strategies, TellWhichRailAPacketTakesAndTheFiguresThatDecide) {
  Random random{11};
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const StrategyEntry* const entry : builtin_strategies()) {
    for (int i = 0; i < 200; ++i) {
      std::array<RailView, 3> rails{};
      for (RailView& rail : rails) {
        rail = {.has_room = random.chance(0.7),
                .latency_ns = 1000 + random.below(100'000),
                .in_flight_bytes = random.below(3) * 50'000,
                .profile_ps_per_byte = 100 + random.below(10'000),
                .measured_ps_per_byte = random.below(2) * (100 + random.below(10'000)),
                .sent_bytes = random.below(1'000'000)};
      }
      const std::uint32_t bytes = random.chance(0.5) ? 1000 : 60'000;
      const std::uint32_t chosen = entry->strategy->choose_rail(rails, bytes);
      const std::string told = entry->strategy->explain_rail(rails, bytes);
      EXPECT_TRUE(chosen == kNoRail ? has(told, "waits")
                                    : has(told, "rail " + std::to_string(chosen)))
          << entry->name << ": " << told;
      EXPECT_TRUE(chosen == kNoRail || entry->name == "direct" ||
                  has(told, "takes rail " + std::to_string(chosen)))
          << entry->name << ": " << told;
    }
  }
  std::array<RailView, 2> rails{};
  rails[0] = {.has_room = true, .latency_ns = 1000, .profile_ps_per_byte = 1000};
  rails[1] = {.has_room = true, .latency_ns = 1000, .profile_ps_per_byte = 4000};
  rails[0].in_flight_bytes = 1 << 20;
  EXPECT_EQ(named("split").explain_rail(rails, 1000),
            "rail 0: 1000 MB/s, a share of 80.0 %, 0 bytes so far, 1048576 ns busy with 1048576 "
            "bytes, passed over: more than 16000 ns; rail 1: 250 MB/s, a share of 20.0 %, 0 bytes "
            "so far, 0 ns busy with 0 bytes; the packet takes rail 1");
  EXPECT_EQ(named("auto").explain_rail(rails, 1000),
            "a packet of 1000 bytes takes rail 1, where it arrives first: rail 0: 1050576 ns "
            "(latency 1000, 1048576 bytes on their way and 1000 at 1000 ps/byte), rail 1: 5000 ns "
            "(latency 1000, 0 bytes on their way and 1000 at 4000 ps/byte)");
}

TEST(Strategies, AdaptiveSharesByWhatWasLearnt) {
  const auto formed = [&](std::uint64_t packet_ns, std::uint64_t ps_per_byte, Trial trial) {
    Waiting waiting;
    for (int i = 0; i < 10; ++i) {
      waiting.add(200);
    }
    return waiting
        .form(named("adaptive"), {.packet_bytes_max = 1000,
                                  .share_bytes = 400,
                                  .learnt_packet_ns = packet_ns,
                                  .learnt_ps_per_byte = ps_per_byte,
                                  .trial = trial})
        .size();
  };
  EXPECT_EQ(formed(0, 0, Trial::none), 5U) << "by the cost model";
  EXPECT_EQ(formed(0, 0, Trial::alone), 1U);
  EXPECT_EQ(formed(100, 1000, Trial::none), 1U);
  EXPECT_EQ(formed(100, 1000, Trial::shared), 5U);
  EXPECT_EQ(formed(200, 1000, Trial::none), 5U);
}

TEST(Strategies, TheEarliestRailCountsWhatIsOnItsWayAndWhatWasMeasured) {
  std::array<RailView, 2> rails{};
  rails[0] = {.has_room = true, .latency_ns = 1000, .profile_ps_per_byte = 1000};
  rails[1] = {.has_room = true, .latency_ns = 1000, .profile_ps_per_byte = 1000};
  rails[1].measured_ps_per_byte = 500;
  EXPECT_EQ(earliest_rail(rails, 1000), 1U);
  rails[1].in_flight_bytes = 3000;
  EXPECT_EQ(earliest_rail(rails, 1000), 0U);
  rails[0].has_room = false;
  EXPECT_EQ(earliest_rail(rails, 1000), kNoRail);  // The other would take half as long again.
  rails[0].in_flight_bytes = 500;
  EXPECT_EQ(earliest_rail(rails, 1000), kNoRail);  // A fifth.
  rails[0].in_flight_bytes = 800;
  EXPECT_EQ(earliest_rail(rails, 1000), 1U);
  rails[0].in_flight_bytes = 100'000;
  rails[1].in_flight_bytes = 200'700;
  EXPECT_EQ(earliest_rail(rails, 1000), 1U);
  rails[1].in_flight_bytes = 201'900;
  EXPECT_EQ(earliest_rail(rails, 1000), 1U);
  rails[1].in_flight_bytes = 202'100;  // By half of what the packet takes, and much is on its way.
  EXPECT_EQ(earliest_rail(rails, 1000), kNoRail);
  rails[0].is_up = false;
  rails[1].in_flight_bytes = 1 << 20;
  EXPECT_EQ(earliest_rail(rails, 1000), 1U);
  rails[1].has_room = false;
  EXPECT_EQ(earliest_rail(rails, 1000), kNoRail);
}

TEST(Strategies, OneThatIsUnknownOrNotToBeLoadedSaysSo) {
  const auto why = [](std::string_view name) { return find_strategy(name).error().text; };
  EXPECT_NE(why("none such").find("auto, aggregate, direct, split, urgent, adaptive"),
            std::string::npos);
  EXPECT_NE(why("./none_such.so").find("cannot be loaded"), std::string::npos);
  EXPECT_NE(why("libm.so.6/").find("cannot be loaded"), std::string::npos);
  EXPECT_TRUE(verify_strategy("./not_here_but_there.so").has_value());
  EXPECT_FALSE(verify_strategy("none such").has_value());
}

}  // namespace
}  // namespace sterna::net
