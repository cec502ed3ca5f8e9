// malloc, stdio, exceptions and MPI, each in the middle when a rank is preempted: what they keep
// for a kernel thread or a rank must be right afterwards. Prints "No Errors".
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../mpi/check.h"

namespace {

thread_local int own = 0;

struct Odd : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int fails(unsigned depth, unsigned seed) {
  if (depth != 0) {
    std::vector<int> some(depth * 10, static_cast<int>(seed));
    return fails(depth - 1, seed) + some.back();
  }
  if (seed % 2 != 0) {
    throw Odd{"odd " + std::to_string(seed)};
  }
  throw seed;
}

void check_exceptions(unsigned seed) {
  try {
    try {
      fails(seed % 8, seed);
      CHECK(!"reached");
    } catch (const Odd& odd) {
      CHECK(odd.what() == "odd " + std::to_string(seed));
      throw;
    }
  } catch (const std::exception& again) {
    CHECK(std::uncaught_exceptions() == 0);
    CHECK(std::string{again.what()}.substr(0, 3) == "odd");
  } catch (unsigned thrown) {
    CHECK(thrown == seed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  own = world_rank;
  unsigned seed = static_cast<unsigned>(world_rank) + 1;
  std::map<unsigned, std::string> heap;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 1000; ++i) {
      seed = seed * 1664525 + 1013904223;
      check_exceptions(seed >> 8);
      heap[seed >> 24] = std::string(1 + (seed >> 16) % 200, static_cast<char>('a' + seed % 26));
      std::ostringstream text;
      text << seed << ' ' << std::hex << seed;
      char copy[64];
      std::snprintf(copy, sizeof copy, "%u %x", seed, seed);
      CHECK(text.str() == copy);
      own += 1;
    }
    CHECK(own == world_rank + 1000 * (round + 1));
    int sum = 0;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == world_size * (world_size - 1) / 2);
  }
  for (const auto& [key, text] : heap) {
    CHECK(!text.empty() && text.find_first_not_of(text[0]) == std::string::npos);
  }
  return end();
}
