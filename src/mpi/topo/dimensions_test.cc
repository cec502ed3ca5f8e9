// Sizes of grids against all ways to write small numbers as products, and the number with the most
// divisors.
#include "mpi/topo/dimensions.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::mpi {
namespace {

/// The smallest difference of first and last in three sizes whose product is `count`.
int smallest_spread(int count) {
  int best = count;
  for (int a = 1; a <= count; ++a) {
    for (int b = 1; b <= count / a; ++b) {
      if (count % (a * b) == 0) {
        const int c = count / (a * b);
        best = std::min(best, std::max({a, b, c}) - std::min({a, b, c}));
      }
    }
  }
  return best;
}

TEST(Dimensions, ThreeSizesAreAsEqualAsTheyCanBe) {
  for (int count = 1; count <= 200; ++count) {
    std::vector<int> sizes(3);
    ASSERT_TRUE(choose_dimensions(count, sizes));
    EXPECT_EQ(sizes[0] * sizes[1] * sizes[2], count);
    EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
    EXPECT_EQ(sizes[0] - sizes[2], smallest_spread(count)) << count;
  }
}

TEST(Dimensions, TheIntWithTheMostDivisorsHasRoom) {
  std::vector<int> sizes(3);
  ASSERT_TRUE(choose_dimensions(2'095'133'040, sizes));  // 1600 of them.
  EXPECT_EQ(sizes, (std::vector<int>{1292, 1287, 1260}));
}

TEST(Dimensions, SizesThatAreGivenStayAndMustDivide) {
  std::vector<int> sizes{0, 3, 0};
  ASSERT_TRUE(choose_dimensions(24, sizes));
  EXPECT_EQ(sizes, (std::vector<int>{4, 3, 2}));
  sizes = {0, 5, 0};
  EXPECT_FALSE(choose_dimensions(24, sizes));
  sizes = {-1, 0};
  EXPECT_FALSE(choose_dimensions(24, sizes));
}

}  // namespace
}  // namespace sterna::mpi
