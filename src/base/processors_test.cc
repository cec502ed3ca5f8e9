// What the system says of its processors.
#include "base/processors.h"

#include <gtest/gtest.h>

namespace sterna {
namespace {

TEST(Processors, OfAListAreCounted) {
  EXPECT_EQ(count_of_list("0"), 1U);
  EXPECT_EQ(count_of_list("0-1\n"), 2U);
  EXPECT_EQ(count_of_list("0-3,8,10-11\n"), 7U);
  for (const char* const wrong : {"", "\n", "-1", "3-1", "0,", "0-", "0 1", "0-1,x", "a"}) {
    EXPECT_EQ(count_of_list(wrong), 0U) << wrong;
  }
}

TEST(Processors, ThatMayBeUsedAreAmongThoseOnline) {
  EXPECT_GE(usable_processors(), 1U);
  if (online_processors() != 0) {
    EXPECT_LE(usable_processors(), online_processors());
  }
}

}  // namespace
}  // namespace sterna
