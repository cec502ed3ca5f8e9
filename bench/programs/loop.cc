// What a loop costs whose turns grow, with two threads: by OpenMP, and by oneTBB where it is there
// (WITH_TBB). Prints, for each, the best of so many times in ns; the first one is not counted: it
// makes the threads.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef WITH_TBB
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#endif

#include "uneven.h"

template <typename Loop>
static void measure(const char* name, int rounds, const Loop& loop) {
  double best = 1e18;
  for (int i = 0; i <= rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    loop();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    best = i == 0 ? best : std::min(best, time.count());
  }
  std::printf("%s %.0f\n", name, best);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  measure("omp_dynamic", rounds, [] {
#pragma omp parallel for schedule(dynamic, 16) num_threads(2)
    for (std::uint64_t i = 0; i < kUnevenTurns; ++i) {
      do_uneven(i, i + 1);
    }
  });
  measure("omp_guided", rounds, [] {
#pragma omp parallel for schedule(guided) num_threads(2)
    for (std::uint64_t i = 0; i < kUnevenTurns; ++i) {
      do_uneven(i, i + 1);
    }
  });
#ifdef WITH_TBB
  const tbb::global_control control{tbb::global_control::max_allowed_parallelism, 2};
  measure("tbb", rounds, [] {
    tbb::parallel_for(tbb::blocked_range<std::uint64_t>{0, kUnevenTurns},
                      [](const tbb::blocked_range<std::uint64_t>& range) {
                        do_uneven(range.begin(), range.end());
                      });
  });
#endif
  return 0;
}
