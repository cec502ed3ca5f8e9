// paper.002.f5, paper.002.f6: what threads cost a data-parallel program, written by hand as the
// compiler of paper 002 would: each thread runs the whole program on its part, scalar code
// included. One processor; a thread that computes is not preempted by another (its §1.4).
#include <algorithm>

#include <fmt/format.h>

#include "bench/rows/on_team.h"
#include "bench/rows/paper_calls.h"
#include "bench/statistics.h"
#include "threads/sync/barrier.h"

namespace sterna::bench {
namespace {

constexpr TeamShape kDataParallel{.preempt = threads::PreemptMode::communication};
constexpr int kThreads[] = {1, 2, 4, 8, 16, 32};

/// One copy for all, so that all have it at the same address.
[[gnu::noinline]] void call_often(int count) {
  for (int i = 0; i < count; ++i) {
    nothing();
  }
}

/// `count` is a multiple of 100. In pieces, with a fence: after many switches some processors
/// predict so short a loop badly, for ten thousands of iterations, until something stops them.
void scalar_loop(int count) {
  for (int i = 0; i < count; i += 100) {
    call_often(100);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

/// Scalar code that each thread runs.
void replicated(int threads, int loop) {
  in_threads(threads, [&](int) { as_program([&] { scalar_loop(loop); }); });
}

/// The same once for all: one thread runs it, and the others wait for that.
void shared(int threads, int loop) {
  threads::Barrier barrier{static_cast<std::uint32_t>(threads)};
  in_threads(threads, [&](int index) {
    if (index == 0) {
      as_program([&] { scalar_loop(loop); });
    }
    (void)barrier.arrive_and_wait();
  });
}

/// Where the part of a thread begins.
[[gnu::noinline]] int part_begin(int size, int threads, int index) {
  return static_cast<int>(std::int64_t{size} * index / threads);
}

/// The program of F6 in one thread of `threads`: a parallel loop over `size` elements in a scalar
/// loop. Each iteration finds its part, as generated code does; an element is two calls, about ten
/// cycles, as there (52.9 ns at 200 MHz).
[[gnu::noinline]] void parallel_part(int threads, int size, int iterations, int index) {
  for (int i = 0; i < iterations; ++i) {
    const int begin = part_begin(size, threads, index);
    call_often(2 * (part_begin(size, threads, index + 1) - begin));
  }
}

}  // namespace

void run_paper_002_f5(const Row& row, Bench& bench) {
  const std::vector<int> loops =
      bench.options().quick ? std::vector{1000} : std::vector{2'000'000, 4'000'000};
  for (const int loop : loops) {
    std::vector<Pairs> apart(std::size(kThreads));
    std::vector<Pairs> together(std::size(kThreads));
    // One thread does it so often that all take as long.
    const auto alone = [&](int times) {
      for (int i = 0; i < times; ++i) {
        replicated(1, loop);
      }
    };
    if (!on_team(
            row, bench,
            [&] {
              for (int round = bench.rounds(5); round > 0; --round) {
                for (std::size_t i = 1; i < std::size(kThreads); ++i) {
                  const int count = kThreads[i];
                  take_turns(
                      apart[i], [&] { replicated(count, loop); }, [&] { alone(count); });
                  take_turns(
                      together[i],
                      [&] {
                        for (int k = 0; k < count; ++k) {
                          shared(count, loop);
                        }
                      },
                      [&] { alone(count); });
                }
              }
            },
            kDataParallel)) {
      return;
    }
    for (std::size_t i = 1; i < std::size(kThreads); ++i) {
      const auto add = [&](const char* what, const Pairs& pairs) {
        bench.add({.id = row.id,
                   .params = fmt::format("{} threads, loop of {}, {}", kThreads[i], loop, what),
                   .unit = "ns",
                   .value = pairs.our_median() / kThreads[i] / loop,
                   .reference = "1 thread",
                   .reference_value = pairs.reference_median() / kThreads[i] / loop,
                   .target = row.target});
      };
      add("replicated, per thread", apart[i]);
      add("shared by all", together[i]);
    }
  }
}

void run_paper_002_f6(const Row& row, Bench& bench) {
  struct Size {
    int loop;
    double paper;  // Time of 32 threads over that without threads.
  };
  static constexpr Size kSizes[] = {
      {4096, 0.925 / 0.867}, {8192, 1.791 / 1.732}, {16384, 3.522 / 3.464}};
  constexpr int kMost = 32;
  const int iterations = bench.options().quick ? 4 : 4000;
  double least = 1e300;
  double most = 0;
  for (const Size size : kSizes) {
    Pairs times;
    if (!on_team(
            row, bench,
            [&] {
              for (int round = bench.rounds(41); round > 0; --round) {
                take_turns(
                    times,
                    [&] {
                      in_threads(kMost, [&](int index) {
                        as_program([&] { parallel_part(kMost, size.loop, iterations, index); });
                      });
                    },
                    [&] { parallel_part(1, size.loop, iterations, 0); });
              }
            },
            kDataParallel)) {
      return;
    }
    // Of the paper's model, time = alpha * threads + beta * size + gamma. Less than 0.01 ns cannot
    // be told from none.
    const double added = times.our_median() - times.reference_median();
    const double alpha = std::max(added / (kMost - 1) / iterations, 0.01);
    least = std::min(least, alpha);
    most = std::max(most, alpha);
    bench.add({.id = row.id,
               .params = fmt::format("{} threads, loop of {}", kMost, size.loop),
               .unit = "ms",
               .value = times.our_median() / 1e6,
               .reference = "without threads",
               .reference_value = times.reference_median() / 1e6,
               .target = size.paper,
               .note = fmt::format("alpha {:.2f} ns a thread and iteration", alpha)});
  }
  bench.add({.id = row.id,
             .params = "alpha, largest of the sizes",
             .unit = "ns",
             .value = most,
             .reference = "smallest",
             .reference_value = least,
             .target = row.target});
}

}  // namespace sterna::bench
