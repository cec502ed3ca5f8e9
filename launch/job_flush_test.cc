// Nodes that all ranks have left: told to hand over what is left of them, and no loss only after
// they have said so. And where ranks were that are lost with their node.
#include "launch/played_job.h"

namespace sterna::launch {
namespace {

struct Moved : Stage {
  Moved() : Stage{runtime::JobMode::node, Temper::obedient, Temper::obedient} { move(2, 1, 1); }
  void move(std::uint32_t rank, std::uint32_t to, std::uint64_t count) {
    const std::uint32_t from = job->ranks()[rank].node;
    say(from, runtime::encode(runtime::RankMove{rank, to, count}));
  }
  /// Time passes until the launcher has told everybody where ranks are.
  void let_it_tell() {
    clock.advance(kSecond);
    turn(clock.now_ns());
  }
  void flushed(std::uint32_t node, std::uint32_t number) {
    say(node, runtime::encode_index(FrameKind::flushed, number));
  }
  void kill(std::uint32_t node) {
    crews[node == 0 ? 0 : 1]->end(node, {.signal = SIGKILL});
    turn(clock.now_ns());
  }
  [[nodiscard]] bool goes_on() const { return !job->is_ending(); }
};

TEST(JobFlush, AnEmptyNodeIsToldOnceForItsDepartures) {
  Moved job;
  EXPECT_TRUE(job.crews[1]->sent(FrameKind::flush).empty());
  job.let_it_tell();
  job.let_it_tell();
  const auto orders = job.crews[1]->sent(FrameKind::flush);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].first, 2U);
  EXPECT_EQ(runtime::decode_index(std::span{orders[0].second}.subspan(runtime::kFrameHeaderBytes))
                .value(),
            1U);
}

TEST(JobFlush, ANodeWithARankIsNotTold) {
  Moved job;
  job.move(2, 2, 2);  // It came back.
  job.let_it_tell();
  for (const auto& [node, frame] : job.crews[1]->sent(FrameKind::flush)) {
    EXPECT_NE(node, 2U);
  }
}

TEST(JobFlush, ANodeThatDiesBeforeItHasHandedOverEndsTheJob) {
  Moved job;
  job.let_it_tell();
  job.kill(2);
  EXPECT_FALSE(job.goes_on());
  EXPECT_NE(job.sink.text().find("node 2, host there, process 1002 was ended by signal 9 (Killed); "
                                 "no rank was on it any more, but it had not yet handed over"),
            std::string::npos)
      << job.sink.text();
}

TEST(JobFlush, ANodeThatDiesAfterwardsIsNoLoss) {
  Moved job;
  job.let_it_tell();
  job.flushed(2, 1);
  job.kill(2);
  EXPECT_TRUE(job.goes_on());
  EXPECT_NE(job.sink.text().find("no rank was on it, the job goes on"), std::string::npos);
}

TEST(JobFlush, ANewDepartureAsksAnew) {
  Moved job;
  job.let_it_tell();
  job.flushed(2, 1);
  job.move(2, 2, 2);
  job.move(2, 0, 3);
  job.let_it_tell();
  EXPECT_EQ(job.crews[1]->sent(FrameKind::flush).size(), 2U);
  job.flushed(2, 1);  // Late.
  job.kill(2);
  EXPECT_FALSE(job.goes_on());
}

TEST(JobFlush, EachNodeCountsItsOwnDeparturesInWhateverOrderTheyAreTold) {
  Moved job;
  // On from node 0, before node 1 has said that it went there.
  job.say(0, runtime::encode(runtime::RankMove{2, 2, 3}));
  job.say(1, runtime::encode(runtime::RankMove{2, 0, 2}));
  EXPECT_EQ(job.job->ranks()[2].node, 2U);
  job.move(0, 1, 1);
  job.let_it_tell();
  const auto orders = job.crews[0]->sent(FrameKind::flush);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(runtime::decode_index(std::span{orders[0].second}.subspan(runtime::kFrameHeaderBytes))
                .value(),
            2U);
}

TEST(JobFlush, TheLastWordsOfRanksThatHaveEndedCountToo) {
  Moved job;
  job.say(0, runtime::encode_index(FrameKind::finalized, 0));
  job.say(0, runtime::encode(runtime::RankEnd{0, 0}));
  job.let_it_tell();
  ASSERT_EQ(job.crews[0]->sent(FrameKind::flush).size(), 1U);
  job.kill(0);
  EXPECT_FALSE(job.goes_on());
}

TEST(JobFlush, WhatANodeSaysOfDeparturesThatNeverWereBreaksTheProtocol) {
  Moved job;
  job.flushed(2, 7);
  EXPECT_FALSE(job.goes_on());
}

/// Rank 2, on node 2 at first, has moved to node 1 in a job that goes on after a loss.
struct MovedAndLost : Stage {
  MovedAndLost()
      : Stage{runtime::JobMode::node, Temper::obedient, Temper::obedient, true, 0, true,
              OnLoss::go_on} {}
  void move() { say(2, runtime::encode(runtime::RankMove{2, 1, 1})); }
  void kill(std::uint32_t node) {
    crews[1]->end(node, {.signal = SIGKILL});
    turn(clock.now_ns());
  }
  /// Where node 0 was told that rank 2 is; none: it was not told.
  [[nodiscard]] std::optional<std::uint64_t> told_place() const {
    const auto told = crews[0]->sent(FrameKind::moved);
    if (told.size() != 1) {
      return std::nullopt;
    }
    const runtime::RankMove move =
        runtime::decode_moved(std::span{told[0].second}.subspan(runtime::kFrameHeaderBytes))
            .value();
    EXPECT_EQ(move.rank, 2U);
    return move.node;
  }
};

TEST(JobLoss, WhoWaitsForARankIsToldThatItWasOnTheNodeThatIsLost) {
  MovedAndLost job;
  job.move();
  job.kill(1);
  EXPECT_FALSE(job.job->is_ending());
  EXPECT_EQ(job.told_place(), 1U);
  EXPECT_EQ(job.crews[0]->sent(FrameKind::peer_lost).size(), 1U);
}

TEST(JobLoss, TheSameWhereTheNewsOfTheMoveComeLater) {
  MovedAndLost job;
  job.kill(1);
  job.move();
  EXPECT_FALSE(job.job->is_ending());
  job.clock.advance(kSecond);
  job.turn(job.clock.now_ns());
  EXPECT_EQ(job.told_place(), 1U);
}

}  // namespace
}  // namespace sterna::launch
