// Threads that a rank creates with <threads.h>, and threads of which nobody knows whose they are.
#include <csignal>

#include <gtest/gtest.h>

#include "program/blockers.h"
#include "program/shims/calling.h"
#include "program/testhost/test_host.h"

namespace sterna::program {
namespace {

TEST(ProgramC11Threads, HoldTheirRankUntilTheyAreJoined) {
  TestHost host{{}};
  host.run("c11");
  const auto next = [&] {
    std::string now = describe_blockers(host.slot(0));
    host.resume_paused();
    host.run();
    return now;
  };
  for (int way = 0; way < 3; ++way) {
    EXPECT_EQ(next(), "a thread of its own is running");
    EXPECT_EQ(next(), "a thread of its own has ended and was not joined");
    EXPECT_EQ(next(), "");
  }
  EXPECT_EQ(host.outcome(0).out, "-6 -12 1 5\n");
  EXPECT_EQ(host.outcome(0).status, 0);
}

TEST(ProgramC11Threads, WhoseCallsAreNobodysIsSaid) {
  EXPECT_EXIT((void)calling_data(), testing::KilledBySignal(SIGABRT),
              "code of the program has called libc in kernel thread [0-9]+, which is no rank");
}

}  // namespace
}  // namespace sterna::program
