// Unmodified C programs as ranks: each test runs a program of testdata/ and looks at what it printed and
// how it ended.
#include "program/program.h"

#include <gtest/gtest.h>

#include "program/testhost/test_host.h"

namespace sterna::program {

const char* const kTestPrograms = STERNA_TEST_PROGRAMS;

namespace {

TEST(Program, DataIsPrivateToEachOf32Ranks) {
  TestHost host{{.rank_count = 32}};
  const auto& outcomes = host.run("globals", {"a b", "c"}, {"COLOUR=blue"});
  for (std::uint32_t rank = 0; rank < 32; ++rank) {
    EXPECT_EQ(outcomes[rank].out,
              "rank " + std::to_string(rank) + " bad 0 jumped 1\n" +
                  "second registered, 0\nfirst registered, 1\n" + "destructor of rank " +
                  std::to_string(rank) + ", global " + std::to_string(41 + rank) + "\n");
    EXPECT_EQ(outcomes[rank].status, 10 + static_cast<int>(rank));
  }
}

}  // namespace
}  // namespace sterna::program
