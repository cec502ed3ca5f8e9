// What processes are told of malloc, and that a user's own wishes stay.
#include "launch/large_pages.h"

#include <gtest/gtest.h>

namespace sterna::launch {
namespace {

using Strings = std::vector<std::string>;

Strings asked(Strings environment) {
  ask_for_large_pages(environment);
  return environment;
}

TEST(LargePagesOfMalloc, AreAskedForBesideWhatIsThere) {
  const Strings got = asked({"PATH=/bin"});
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0], "PATH=/bin");
  EXPECT_TRUE(got[1].starts_with("GLIBC_TUNABLES=glibc.malloc.hugetlb=1:")) << got[1];
}

TEST(LargePagesOfMalloc, OtherTunablesStay) {
  const Strings got = asked({"GLIBC_TUNABLES=glibc.pthread.rseq=0", "A=b"});
  ASSERT_EQ(got.size(), 2U);
  EXPECT_TRUE(got[0].starts_with("GLIBC_TUNABLES=glibc.pthread.rseq=0:glibc.malloc.hugetlb=1:"))
      << got[0];
  EXPECT_TRUE(asked({"GLIBC_TUNABLES="})[0].starts_with("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
}

TEST(LargePagesOfMalloc, WhoTunesMallocHimselfIsLeftAlone) {
  for (const Strings& own :
       {Strings{"GLIBC_TUNABLES=glibc.malloc.check=3"}, Strings{"MALLOC_TRIM_THRESHOLD_=100000"},
        Strings{"A=b", "LD_PRELOAD=libjemalloc.so.2"},
        Strings{"MALLOC_ARENA_MAX=1", "GLIBC_TUNABLES=glibc.pthread.rseq=0"}}) {
    EXPECT_EQ(asked(own), own);
  }
}

}  // namespace
}  // namespace sterna::launch
