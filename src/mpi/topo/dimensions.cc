// Sizes of grids: of all ways to write a number as a product, the one with the smallest spread.
#include "mpi/topo/dimensions.h"

#include <algorithm>

namespace sterna::mpi {
namespace {

constexpr std::size_t kDimensionsMax = 64;  // Beyond 31 all further sizes are 1: 2^31 has no more.

struct Search {
  int best[kDimensionsMax];
  int now[kDimensionsMax];
  std::size_t count;
  bool has_best = false;

  // Descending sizes; better: a smaller first one, then a larger last one.
  void consider() noexcept {
    if (!has_best || now[0] < best[0] || (now[0] == best[0] && now[count - 1] > best[count - 1])) {
      std::copy(now, now + count, best);
      has_best = true;
    }
  }

  void place(std::size_t index, int left, int size_max) noexcept {
    if (index + 1 == count) {
      if (left <= size_max) {
        now[index] = left;
        consider();
      }
      return;
    }
    for (int size = 1; size <= left / size; ++size) {
      if (left % size == 0) {
        for (const int candidate : {size, left / size}) {
          if (candidate <= size_max && (!has_best || index > 0 || candidate <= best[0])) {
            now[index] = candidate;
            place(index + 1, left / candidate, candidate);
          }
        }
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
  Search search;
  search.count = std::min<std::size_t>(free_count, 31);
  search.place(0, count, count);
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
