// That a job ends within its time, whatever the cause and whoever does not obey: the clock is
// driven, the crews are played, each cause meets each way of not ending.
#include "launch/played_job.h"

namespace sterna::launch {
namespace {

constexpr std::uint32_t kCulprit = 1;  // Whom the cause comes from.

enum class Cause { abort, crash, lost, exit, interrupt, timeout };

int give(Stage& stage, Cause cause) {
  switch (cause) {
    case Cause::abort:
      stage.say(kCulprit, runtime::encode(runtime::RankAbort{kCulprit, 42, "enough"}));
      return 42;
    case Cause::crash: {
      std::array<std::byte, runtime::kCrashFrameBytesMax> memory;
      const std::size_t bytes = runtime::encode_crash(
          {.rank = kCulprit, .signal = SIGSEGV, .thread = {}, .text = {}}, memory);
      stage.say(kCulprit, {memory.begin(), memory.begin() + bytes});
      return 128 + SIGSEGV;
    }
    case Cause::lost:
      stage.crews[1]->end(kCulprit, {.signal = SIGKILL});
      return 128 + SIGKILL;
    case Cause::exit:
      if (stage.job->plan().job.mode == runtime::JobMode::node) {
        stage.say(kCulprit, runtime::encode(runtime::RankEnd{kCulprit, 4}));
      } else {
        stage.crews[1]->end(kCulprit, {.exit_code = 4});
      }
      return 4;
    case Cause::interrupt:
      stage.job->on_signal(SIGINT);
      return 130;
    case Cause::timeout:
      stage.clock.advance(7 * kSecond);
      return 124;
  }
  return 0;
}

class Endings : public testing::TestWithParam<std::tuple<runtime::JobMode, Cause, Temper, bool>> {};

TEST_P(Endings, AreOverInTime) {
  const auto [mode, cause, temper, is_read] = GetParam();
  for (const Temper here : {Temper::obedient, temper}) {
    Stage stage{mode, here, temper, is_read, cause == Cause::timeout ? 7 * kSecond : 0};
    const std::uint64_t quiet_ns = stage.end(5 * kSecond);
    ASSERT_EQ(quiet_ns, 5 * kSecond) << "nothing ends a job without a cause";
    if (cause == Cause::timeout) {
      stage.clock.advance(2 * kSecond);
    }
    const std::uint64_t cause_ns = stage.clock.now_ns();
    const int exit_code = cause == Cause::timeout ? 124 : give(stage, cause);
    EXPECT_LE(stage.end(60 * kSecond), kEndNs);
    ASSERT_TRUE(stage.job->is_over());
    EXPECT_EQ(stage.job->exit_code(), exit_code);
    for (const PlayedCrew* crew : stage.crews) {
      EXPECT_EQ(crew->term_ns(), cause_ns);
      EXPECT_TRUE(crew->was_left_and_closed());
    }
    // Of the loud ones something is left too: whoever holds their output.
    EXPECT_EQ(stage.crews[1]->kill_ns() != 0, temper != Temper::obedient);
    if (is_read) {
      const std::string text = stage.sink.text();
      const bool names_rank = cause <= Cause::exit;
      EXPECT_EQ(
          text.find("rank 1 (node 1, host there, process 1001)") != std::string::npos ||
              text.find("the process of node 1, host there, process 1001") != std::string::npos,
          names_rank)
          << text;
      const bool stays = temper == Temper::immortal || temper == Temper::unreachable;
      EXPECT_EQ(text.find("did not end, not even killed") != std::string::npos, stays) << text;
      EXPECT_EQ(text.find("node 2, host there, process 1002") != std::string::npos, stays) << text;
    }
  }
}

std::string name_of(const testing::TestParamInfo<Endings::ParamType>& info) {
  const char* const causes[] = {"Abort", "Crash", "Lost", "Exit", "Interrupt", "Timeout"};
  const char* const tempers[] = {"Obedient", "Deaf", "Immortal", "Loud", "Unreachable"};
  return std::string{std::get<0>(info.param) == runtime::JobMode::node ? "Nodes" : "Processes"} +
         causes[static_cast<int>(std::get<1>(info.param))] +
         tempers[static_cast<int>(std::get<2>(info.param))] +
         (std::get<3>(info.param) ? "Read" : "Unread");
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Endings,
    testing::Combine(testing::Values(runtime::JobMode::process, runtime::JobMode::node),
                     testing::Values(Cause::abort, Cause::crash, Cause::lost, Cause::exit,
                                     Cause::interrupt, Cause::timeout),
                     testing::Values(Temper::obedient, Temper::deaf, Temper::immortal, Temper::loud,
                                     Temper::unreachable),
                     testing::Bool()),
    name_of);

TEST(JobEnding, ASecondSignalKillsAtOnce) {
  Stage stage{runtime::JobMode::process, Temper::deaf, Temper::deaf};
  stage.job->on_signal(SIGINT);
  stage.clock.advance(1);
  stage.job->on_signal(SIGINT);
  EXPECT_EQ(stage.crews[0]->kill_ns(), stage.clock.now_ns());
  EXPECT_LT(stage.end(60 * kSecond), kSecond);
  EXPECT_EQ(stage.job->exit_code(), 130);
}

// What the node said on which the rank began comes later than what that on which it ended says.
TEST(JobEnding, NewsOfARankComeInAnyOrder) {
  Stage stage{runtime::JobMode::node, Temper::obedient, Temper::obedient, true, 0, false};
  stage.say(0, runtime::encode_index(FrameKind::initialized, 0));
  stage.say(0, runtime::encode(runtime::RankEnd{1, 0, true, true}));
  stage.say(1, runtime::encode_index(FrameKind::initialized, 1));
  stage.say(1, runtime::encode_index(FrameKind::finalized, 1));
  stage.say(0, runtime::encode(runtime::RankEnd{0, 0, true, true}));
  stage.say(2, runtime::encode(runtime::RankEnd{2, 0, true, true}));
  stage.end(60 * kSecond);
  EXPECT_EQ(stage.job->exit_code(), 0) << stage.sink.text();
}

TEST(JobEnding, NodesThatDoNotEndAfterTheirRanksAreEndedAndTheJobIsAGoodOne) {
  Stage stage{runtime::JobMode::node, Temper::obedient, Temper::deaf};
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    stage.say(rank, runtime::encode_index(FrameKind::finalized, rank));
    stage.say(rank, runtime::encode(runtime::RankEnd{rank, 0}));
  }
  EXPECT_LE(stage.end(60 * kSecond), 10 * kSecond + kEndNs);
  EXPECT_EQ(stage.job->exit_code(), 0);
  EXPECT_NE(stage.sink.text().find("all ranks have ended, but not their nodes"), std::string::npos);
}

// Nothing else happens any more in such a job that could tell the nodes to end.
TEST(JobEnding, ARankThatIsLostOnItsWayMayBeTheLastOne) {
  Stage stage{runtime::JobMode::node, Temper::obedient, Temper::obedient, true, 0, true,
              OnLoss::go_on};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    stage.say(rank, runtime::encode_index(FrameKind::finalized, rank));
    stage.say(rank, runtime::encode(runtime::RankEnd{rank, 0}));
  }
  stage.clock.advance(kSecond);
  stage.turn(stage.clock.now_ns());
  stage.say(1, runtime::encode_index(FrameKind::flushed, 1));
  stage.crews[1]->end(1, {.signal = SIGKILL});
  EXPECT_TRUE(stage.crews[0]->sent(FrameKind::stop).empty());
  stage.say(2, runtime::encode(runtime::RankMove{2, 1, 1}));
  EXPECT_FALSE(stage.job->is_ending());
  EXPECT_EQ(stage.crews[0]->sent(FrameKind::stop).size(), 1U);
  EXPECT_EQ(stage.crews[1]->sent(FrameKind::stop).size(), 1U);
  stage.crews[0]->end(0, {});
  stage.crews[1]->end(2, {});
  stage.turn(stage.clock.now_ns());
  stage.turn(stage.clock.now_ns());  // Now all has been printed.
  EXPECT_TRUE(stage.job->is_over());
  EXPECT_EQ(stage.job->exit_code(), 128 + SIGKILL);
  EXPECT_NE(stage.sink.text().find("rank 2 was lost: it was moving to node 1"), std::string::npos)
      << stage.sink.text();
}

TEST(JobEnding, ASlowReaderGetsAllOfAGoodJobsOutput) {
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient, false};
  stage.job->warn("the last line");
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    stage.say(rank, runtime::encode_index(FrameKind::finalized, rank));
    stage.crews[rank == 0 ? 0 : 1]->end(rank, {});
  }
  EXPECT_EQ(stage.end(3600 * kSecond), 3600 * kSecond) << "it is still waiting";
  stage.job->on_signal(SIGINT);
  EXPECT_LE(stage.end(60 * kSecond), kEndNs) << "but a signal ends that";
}

}  // namespace
}  // namespace sterna::launch
