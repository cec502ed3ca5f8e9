// Unmodified programs as ranks: each test runs a program of testdata/ and looks at what it printed
// and how it ended.
#include "program/program.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "program/blocker_table.h"
#include "program/blockers.h"
#include "program/testhost/test_host.h"

namespace sterna::program {

const char* const kTestPrograms = STERNA_TEST_PROGRAMS;

namespace {

std::string number(std::uint32_t value) {
  return std::to_string(value);
}

class ProgramOnWorkers : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ProgramOnWorkers, DataIsPrivateToEachOf32Ranks) {
  TestHost host{{.rank_count = 32, .worker_count = GetParam(), .stack_bytes = 1 << 20}};
  const auto& outcomes = host.run("globals", {"a b", "c"}, {"COLOUR=blue"});
  for (std::uint32_t rank = 0; rank < 32; ++rank) {
    EXPECT_EQ(outcomes[rank].out, "rank " + number(rank) + " bad 0 jumped 1\n" +
                                      "second registered, 0\nfirst registered, 1\n" +
                                      "destructor of rank " + number(rank) + ", global " +
                                      number(41 + rank) + "\n");
    EXPECT_EQ(outcomes[rank].status, 10 + static_cast<int>(rank));
  }
}

TEST_P(ProgramOnWorkers, CxxObjectsStreamsAndExceptionsArePrivate) {
  TestHost host{{.rank_count = 16, .worker_count = GetParam(), .stack_bytes = 1 << 20}};
  host.run("cxx");
  while (!host.paused().empty()) {
    host.resume_paused();
    host.run();
  }
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(host.outcome(rank).status, 0);
    EXPECT_EQ(host.outcome(rank).out, "rank " + number(rank) + " bad 0\nand by printf " +
                                          number(rank) + "\nthread_local of " + number(rank) +
                                          " is destroyed\nstatic of " + number(rank) +
                                          " is destroyed\n");
    EXPECT_EQ(host.outcome(rank).err, "error line " + number(rank) + "\n");
  }
}

TEST_P(ProgramOnWorkers, RecursionCallbacksAndLibcWork) {
  TestHost host{{.rank_count = 4, .worker_count = GetParam(), .stack_bytes = 8 << 20}};
  host.run("recursion");
  EXPECT_EQ(host.paused().size(), 4u);
  host.resume_paused();
  host.run();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, "bad 0\n");
  }
  EXPECT_EQ(host.sleeps, 4u);
}

TEST_P(ProgramOnWorkers, LinesComeOutWhole) {
  TestHost host{{.rank_count = 4, .worker_count = GetParam()}};
  host.input = "first\nsecond\n";
  host.run("output");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    std::string lines = "begin end\nxyz\n";
    for (std::uint32_t line = 0; line < 20; ++line) {
      lines += "rank " + number(rank) + " line " + number(line) + "\n";
    }
    lines += "direct write\nof two pieces\n";
    lines += rank == 0 ? "read first\nread second\nno line end" : "no line end";
    EXPECT_EQ(host.outcome(rank).out, lines);
    EXPECT_EQ(host.outcome(rank).err, "perror: No such file or directory\nstandard error " +
                                          number(rank) + "\noutput: warning 7\n");
    const auto& pieces = host.outcome(rank).pieces;
    EXPECT_EQ(std::count_if(pieces.begin(), pieces.end(),
                            [](const std::string& piece) { return !piece.ends_with('\n'); }),
              1);
  }
}

TEST_P(ProgramOnWorkers, GetoptOfOneRankDoesNotDisturbAnother) {
  TestHost host{{.rank_count = 3, .worker_count = GetParam()}};
  ASSERT_TRUE(host.open(std::string{kTestPrograms} + "getopts"));
  const std::vector<std::string> lines[3] = {
      {"p", "one", "-ab", "x", "two", "--size=5", "--verb", "--", "-a"},
      {"p", "-x", "-abval", "op", "-c", "-cz", "-q"},
      {"p", "--size", "7", "three", "--nothing", "-s", "9", "four"}};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(host.create(rank, lines[rank]));
  }
  host.run();
  EXPECT_EQ(host.outcome(0).out, "a()b(x)s(5)v() then one two -a\n");
  EXPECT_EQ(host.outcome(0).status, 6);
  EXPECT_EQ(host.outcome(1).out, "x()a()b(val)c()c(z)?()[113] then op\n");
  EXPECT_EQ(host.outcome(1).err, "p: invalid option -- 'q'\n");
  EXPECT_EQ(host.outcome(2).out, "s(7)?()[0]s(9) then three four\n");
  EXPECT_EQ(host.outcome(2).err, "p: unrecognized option '--nothing'\n");
}

TEST_P(ProgramOnWorkers, RandomNumbersTablesAndTokensArePrivate) {
  TestHost host{{.rank_count = 8, .worker_count = GetParam()}};
  host.run("sequences");
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, "bad 0, 3 words\n");
  }
}

TEST_P(ProgramOnWorkers, EnvironmentIsPrivate) {
  TestHost host{{.rank_count = 8, .worker_count = GetParam()}};
  host.run("environment", {}, {"KEPT=mine", "GONE=1"});
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, number(rank) + " mine in gone 3\n");
    EXPECT_EQ(host.outcome(rank).status, 0);
  }
}

TEST_P(ProgramOnWorkers, KernelThreadsOfARankHaveItsData) {
  TestHost host{{.rank_count = 3, .worker_count = GetParam()}};
  host.run("threads");
  ASSERT_EQ(host.paused().size(), 3u);
  EXPECT_TRUE(may_move(host.slot(1))) << describe_blockers(host.slot(1));
  host.resume_paused();
  host.run();
  host.resume_paused();
  host.run();
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(host.outcome(rank).out,
              "rank " + number(rank) + ": 4 good, 4 destroyed, own " + number(rank) + "\n");
    EXPECT_EQ(host.outcome(rank).status, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ProgramOnWorkers, testing::Values(1, 2));

TEST(Program, EachThingThatHoldsARankIsNamed) {
  TestHost host{{}};
  host.run("holds");
  const auto next = [&] {
    host.resume_paused();
    host.run();
    return describe_blockers(host.slot(0));
  };
  EXPECT_EQ(describe_blockers(host.slot(0)), "");
  EXPECT_TRUE(may_move(host.slot(0)));
  EXPECT_EQ(next(), "file /etc/passwd is open");
  EXPECT_FALSE(may_move(host.slot(0)));
  EXPECT_EQ(next(),
            "file /dev/null is open; socket pair (one end) is open; "
            "socket pair (other end) is open");
  EXPECT_EQ(next(), "directory / is open; library libm.so.6 is loaded");
  EXPECT_EQ(next(), "a file is mapped (4096 bytes)");
  EXPECT_EQ(next(), "");
  EXPECT_TRUE(may_move(host.slot(0)));
  next();
  EXPECT_EQ(host.outcome(0).status, 0);
}

TEST(Program, WhatHoldsARankIsCutBetweenCharacters) {
  TestHost host{{}};
  host.run("holds");
  RankData& data = data_of(host.slot(0));
  std::string name;
  for (int i = 0; i < 60; ++i) {
    name += "\xc3\xa4";
  }
  for (const std::string before : {"", "a"}) {  // One of the two is cut within a character.
    add_blocker(data, BlockerKind::file, 7, "file %s%s is open", before.c_str(), name.c_str());
    const std::string text = describe_blockers(host.slot(0));
    EXPECT_GE(text.size(), kBlockerTextBytes - 2);
    EXPECT_EQ((text.size() - before.size() - std::string{"file "}.size()) % 2, 0U) << text;
    remove_blocker(data, BlockerKind::file, 7);
  }
  while (!host.paused().empty()) {
    host.resume_paused();
    host.run();
  }
}

/// No other process could join it.
TEST(Program, AThreadThatWasNotJoinedHoldsItsRank) {
  TestHost host{{}};
  host.run("joins");
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
  for (int way = 0; way < 2; ++way) {
    EXPECT_EQ(next(), "a thread of its own is running");
    EXPECT_EQ(next(), "");
  }
  EXPECT_EQ(host.outcome(0).out, "1 1 1 1\n");
}

struct End {
  const char* how;
  int status;
  int signal;
  const char* out;
  const char* err;
};

class ProgramEnds : public testing::TestWithParam<End> {};

TEST_P(ProgramEnds, AsItSays) {
  TestHost host{{.rank_count = 2}};
  host.run("ends", {GetParam().how});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(host.outcome(rank).status, GetParam().status);
    EXPECT_EQ(host.outcome(rank).signal, GetParam().signal);
    EXPECT_EQ(host.outcome(rank).out, GetParam().out);
    EXPECT_NE(host.outcome(rank).err.find(GetParam().err), std::string::npos)
        << host.outcome(rank).err;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ProgramEnds,
                         testing::Values(End{"return", 7, 0, "text without line endhandler\n", ""},
                                         End{"exit", 44, 0, "text without line endhandler\n", ""},
                                         End{"_exit", 4, 0, "", ""},
                                         End{"quick_exit", 5, 0, "text without line endquick\n",
                                             ""},
                                         End{"verrx", 9, 0, "text without line endhandler\n",
                                             "ends: fatal 7\n"},
                                         End{"error_at_line", 6, 0,
                                             "text without line endhandler\n",
                                             "ends:f.c:3: no way: No such file or directory\n"},
                                         End{"execlp", 8, 0, "text without line endhandler\n",
                                             "a mobile rank cannot exec()"},
                                         End{"dlopen", 7, 0, "text without line endhandler\n",
                                             "0 /not/there.so: cannot open shared object file: No "
                                             "such file or directory 0\n"
                                             "ends: undefined symbol: nowhere\n"},
                                         End{"abort", -1, SIGABRT, "", ""},
                                         End{"assert", -1, SIGABRT, "text without line end",
                                             "Assertion `argc == 77' failed."}));

}  // namespace
}  // namespace sterna::program
