// Sizes of grids: of all ways to write a number as a product, the one with the smallest spread.
#include "mpi/topo/dimensions.h"

#include <algorithm>
#include <cstdint>

namespace sterna::mpi {
namespace {

constexpr std::size_t kDimensionsMax = 31;  // All further sizes are 1: 2^31 has no more factors.
constexpr std::size_t kDivisorsMax = 1600;  // The most that an int has: 2095133040.

/// size^count >= value?
bool reaches(int size, std::size_t count, int value) noexcept {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < count && product < value; ++i) {
    product *= size;
  }
  return product >= value;
}

/// The largest of `count` sizes at most whose product is `value` that the smallest of them can be.
int largest_last(std::size_t count, int value) noexcept {
  int low = 1;
  for (int high = value; low < high;) {
    const int middle = low + (high - low + 1) / 2;
    std::int64_t product = 1;
    for (std::size_t i = 0; i < count && product <= value; ++i) {
      product *= middle;
    }
    product <= value ? low = middle : high = middle - 1;
  }
  return low;
}

struct Search {
  int divisors[kDivisorsMax];
  std::size_t divisor_count = 0;
  int best[kDimensionsMax];
  int now[kDimensionsMax];
  std::size_t count;
  bool has_best = false;

  Search(int product, std::size_t size_count) noexcept : count{size_count} {
    for (int size = 1; size <= product / size; ++size) {
      if (product % size == 0) {
        divisors[divisor_count++] = size;
        if (size != product / size) {
          divisors[divisor_count++] = product / size;
        }
      }
    }
    std::sort(divisors, divisors + divisor_count);
    place(0, product, product);
  }

  // Descending sizes; better: a smaller difference of first and last, then a larger last one.
  void consider() noexcept {
    const int spread = now[0] - now[count - 1];
    const int least = has_best ? best[0] - best[count - 1] : 0;
    if (!has_best || spread < least || (spread == least && now[count - 1] > best[count - 1])) {
      std::copy(now, now + count, best);
      has_best = true;
    }
  }

  [[nodiscard]] bool is_hopeless(int first, std::size_t left_count, int left) const noexcept {
    return has_best && first - largest_last(left_count, left) > best[0] - best[count - 1];
  }

  void place(std::size_t index, int left, int size_max) noexcept {
    if (index == count) {
      consider();
      return;
    }
    for (std::size_t i = 0; i < divisor_count && divisors[i] <= size_max; ++i) {
      const int size = divisors[i];
      if (left % size != 0 || !reaches(size, count - index, left)) {
        continue;
      }
      now[index] = size;
      if (!is_hopeless(now[0], count - index, left)) {
        place(index + 1, left / size, size);
      }
    }
  }
};

}  // namespace

bool choose_dimensions(int count, std::span<int> sizes) noexcept {
  std::size_t free_count = 0;
  for (const int size : sizes) {
    if (size < 0 || (size > 0 && count % size != 0)) {
      return false;
    }
    count = size > 0 ? count / size : count;
    free_count += size == 0 ? 1 : 0;
  }
  if (free_count == 0) {
    return count == 1;
  }
  const Search search{count, std::min(free_count, kDimensionsMax)};
  std::size_t next = 0;
  for (int& size : sizes) {
    if (size == 0) {
      size = next < search.count ? search.best[next] : 1;
      ++next;
    }
  }
  return true;
}

}  // namespace sterna::mpi
