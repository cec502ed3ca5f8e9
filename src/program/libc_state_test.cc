// What libc keeps once a process is each rank's own: ranks that run in turn, and ranks that move,
// print what processes print.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "program/blockers.h"
#include "program/testhost/move.h"
#include "program/testhost/test_host.h"

namespace sterna::program {
namespace {

/// What the test program prints as a process with this number.
std::string output_of_process(std::uint32_t rank) {
  const std::string command =
      std::string{"env -i "} + kTestPrograms + "libc_state " + std::to_string(rank);
  std::FILE* const file = ::popen(command.c_str(), "r");
  check(file != nullptr, "a shell starts");
  std::string text;
  for (int next = std::fgetc(file); next != EOF; next = std::fgetc(file)) {
    text.push_back(static_cast<char>(next));
  }
  EXPECT_EQ(::pclose(file), 0);
  return text;
}

class StateOfLibc : public testing::TestWithParam<std::uint32_t> {};

TEST_P(StateOfLibc, IsEachRanksOwn) {
  TestHost host{{.rank_count = 4, .worker_count = GetParam()}};
  host.run("libc_state");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, output_of_process(rank));
    EXPECT_EQ(host.outcome(rank).err, "");
  }
}

TEST_P(StateOfLibc, KeysAreEachRanksOwn) {
  TestHost host{{.rank_count = 4, .worker_count = GetParam()}};
  host.run("keys");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, "bad 0, destroyed 10, rounds 16\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, StateOfLibc, testing::Values(1, 2));

TEST(StateOfLibc, MovesWithItsRank) {
  TestHost host{{}};
  EXPECT_GE(run_on_two(host, "libc_state", {"moves"}), 10);
  EXPECT_EQ(host.outcome(0).out, output_of_process(0));
}

TEST(StateOfLibc, KeysAndTheirValuesMoveWithTheirRank) {
  TestHost host{{}};
  EXPECT_EQ(run_on_two(host, "keys", {"moves"}), 2);
  EXPECT_EQ(host.outcome(0).out, "bad 0, destroyed 10, rounds 16\n");
}

TEST(StateOfLibc, ObjectsOfTheProcessHoldARank) {
  TestHost host{{}};
  host.run("objects");
  const auto next = [&] {
    std::string now = describe_blockers(host.slot(0));
    host.resume_paused();
    host.run();
    return now;
  };
  EXPECT_TRUE(next().starts_with("shared memory "));
  EXPECT_TRUE(next().starts_with("semaphore /sterna_test_"));
  EXPECT_EQ(next(), "a timer (timer_create) is there");
  const std::string descriptors = next();
  for (const char* name : {"file /tmp/sterna_test_", "signalfd", "inotify",
                           "shared memory /sterna_test_", "descriptor (by fcntl)"}) {
    EXPECT_NE(descriptors.find(name), std::string::npos) << descriptors;
  }
  EXPECT_EQ(next(), "a stream (fmemopen) is open; a stream (open_memstream) is open");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(host.outcome(0).status, 0);
}

TEST(StateOfLibc, MemoryThatIsSetAsideIsNotTouched) {
  TestHost host{{}};
  host.run("maps");
  EXPECT_EQ(host.outcome(0).out, "bad 0\n");
}

TEST(StateOfLibc, AHandlerThatFindsNoRankCallsLibc) {
  TestHost host{{}};
  host.run("signals");
  EXPECT_EQ(host.outcome(0).out, "called 1, -1\n");
}

}  // namespace
}  // namespace sterna::program
