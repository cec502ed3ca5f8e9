// Ranks move to another process at every pause, back and forth, and do not notice.
#include "program/testhost/move.h"

#include <gtest/gtest.h>

namespace sterna::program {
namespace {

TEST(Move, CProgramGoesOnAtTheSameAddresses) {
  TestHost host{{}};
  EXPECT_GE(run_on_two(host, "moves", {"-a", "-b", "-c", "x"}), 5);
  EXPECT_EQ(host.outcome(0).out, "begin end\nbad 0 moves\nat exit: kept 99999\n");
  EXPECT_EQ(host.outcome(0).status, 3);
}

TEST(Move, CxxProgramGoesOnInsideACatchBlockAndThrowsAgain) {
  TestHost host{{}};
  EXPECT_EQ(run_on_two(host, "cxx", {}), 4);
  EXPECT_EQ(host.outcome(0).out,
            "rank 0 bad 0\nand by printf 0\nthread_local of 0 is destroyed\n"
            "static of 0 is destroyed\n");
  EXPECT_EQ(host.outcome(0).err, "error line 0\n");
  EXPECT_EQ(host.outcome(0).status, 0);
}

TEST(Move, ARecursiveMutexMovesWhileItIsHeld) {
  TestHost host{{.stack_bytes = 8 << 20}};
  EXPECT_EQ(run_on_two(host, "recursion", {}), 1);
  EXPECT_EQ(host.outcome(0).out, "bad 0\n");
}

TEST(Move, ARankThatHadThreadsMovesAfterwards) {
  TestHost host{{}};
  host.run("threads");
  host.resume_paused();  // Rank 0 paused with its threads; now at its end.
  host.run();
  OtherProcess other{std::string{kTestPrograms} + "threads", 1};
  other.send(host, 0);
  EXPECT_FALSE(other.run_and_return(host, 0));
  EXPECT_EQ(host.outcome(0).out, "rank 0: 4 good, 4 destroyed, own 0\n");
}

}  // namespace
}  // namespace sterna::program
