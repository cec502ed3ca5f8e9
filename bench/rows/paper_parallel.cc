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

namespace {

constexpr int kSizes[] = {4096, 8192, 16384};

/// The whole workload of F6 in all numbers of threads, and without threads, side by side: a tenth
/// of the iterations of each, and again, since what threads add is some thousandths of the time,
/// and the clock of a shared machine changes by more than that within a second.
class ParallelTimes {
 public:
  static constexpr std::size_t kPlain = std::size(kThreads);  // Place of the program without any.

  explicit ParallelTimes(bool is_quick) : iterations_{is_quick ? 10 : 4000} {}

  /// On a thread of the team.
  void measure(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t size = 0; size < std::size(kSizes); ++size) {
        const std::uint64_t begin = now_ns();
        std::vector<double> sums(kPlain + 1, 0);
        for (std::size_t piece = 0; piece < kPieces; ++piece) {
          for (std::size_t place = 0; place < sums.size(); ++place) {
            const std::size_t which = (place + piece) % sums.size();
            sums[which] += ns_per(1, [&] { run(which, kSizes[size]); });
          }
        }
        for (std::size_t which = 0; which < sums.size(); ++which) {
          times_[size][which].push_back(sums[which]);
        }
        rest_since(begin);
      }
    }
  }

  /// In the most threads, against none.
  [[nodiscard]] Pairs most(std::size_t size) const {
    return {times_[size][kPlain - 1], times_[size][kPlain]};
  }
  /// What a thread adds to an iteration, in elements, by the model of the paper for one size:
  /// time = alpha * threads + gamma. One estimate a round.
  [[nodiscard]] std::vector<double> alphas(std::size_t size) const {
    return of_rounds([&](std::size_t round) {
      const std::vector<double> line = fit(samples(round, size, size + 1, false));
      return line[0] / iterations_ / element_ns(round);
    });
  }
  /// The same by the whole model: time = alpha * threads + gamma + beta * size.
  [[nodiscard]] std::vector<double> alphas() const {
    return of_rounds([&](std::size_t round) {
      const std::vector<double> plane = fit(samples(round, 0, std::size(kSizes), true));
      return plane[0] / plane[2];
    });
  }
  [[nodiscard]] std::vector<double> elements_ns() const {
    return of_rounds([&](std::size_t round) { return element_ns(round); });
  }
  /// How far the whole model is off, at the worst, from the medians of all rounds: %.
  [[nodiscard]] double worst_percent() const {
    std::vector<Sample> medians = samples(0, 0, std::size(kSizes), true);
    for (std::size_t i = 0; i < medians.size(); ++i) {
      medians[i].value = median(times_[i / kPlain][i % kPlain]);
    }
    return 100 * worst_error(medians, fit(medians));
  }

 private:
  static constexpr std::size_t kPieces = 10;

  void run(std::size_t which, int size) const {
    const int iterations = iterations_ / static_cast<int>(kPieces);
    if (which == kPlain) {
      parallel_part(1, size, iterations, 0);
      return;
    }
    const int count = kThreads[which];
    in_threads(count, [&](int index) {
      as_program([&] { parallel_part(count, size, iterations, index); });
    });
  }

  /// Those in threads, of sizes from `first` to before `end`.
  [[nodiscard]] std::vector<Sample> samples(std::size_t round, std::size_t first, std::size_t end,
                                            bool has_size) const {
    std::vector<Sample> all;
    for (std::size_t size = first; size < end; ++size) {
      for (std::size_t which = 0; which < kPlain; ++which) {
        Sample sample{times_[size][which][round], {static_cast<double>(kThreads[which]), 1}};
        if (has_size) {
          sample.terms.push_back(kSizes[size]);
        }
        all.push_back(std::move(sample));
      }
    }
    return all;
  }
  [[nodiscard]] double element_ns(std::size_t round) const {
    return fit(samples(round, 0, std::size(kSizes), true))[2] / iterations_;
  }
  template <typename OfRound>
  [[nodiscard]] std::vector<double> of_rounds(const OfRound& of_round) const {
    std::vector<double> all;
    for (std::size_t round = 0; round < times_[0][0].size(); ++round) {
      all.push_back(of_round(round));
    }
    return all;
  }

  const int iterations_;
  // By size, by number of threads, by round: ns.
  std::vector<double> times_[std::size(kSizes)][kPlain + 1];
};

}  // namespace

void run_paper_002_f6(const Row& row, Bench& bench) {
  // Of their table: 32 threads over none, and the plane through all of its times: alpha 0.468 us
  // (they say about 0.5), beta 52.9 ns.
  static constexpr double kPaper[] = {0.925 / 0.867, 1.791 / 1.732, 3.522 / 3.464};
  static constexpr double kPaperAlpha = 8.85;  // Elements.
  ParallelTimes times{bench.options().quick};
  if (!on_team(
          row, bench, [&] { times.measure(bench.rounds(31)); }, kDataParallel)) {
    return;
  }
  for (std::size_t size = 0; size < std::size(kSizes); ++size) {
    const Estimate alpha = estimate(times.alphas(size));
    const Pairs pairs = times.most(size);
    bench.add({.id = row.id,
               .params = fmt::format("32 threads, loop of {}", kSizes[size]),
               .unit = "ms",
               .value = pairs.our_median() / 1e6,
               .reference = "without threads",
               .reference_value = pairs.reference_median() / 1e6,
               .target = kPaper[size],
               .note = fmt::format("alpha {:.2f} +- {:.2f} elements", alpha.value, alpha.error)});
  }
  const Estimate alpha = estimate(times.alphas());
  const Estimate element = estimate(times.elements_ns());
  // What it may be at most. Less than 0.01 elements cannot be told from none.
  bench.add({.id = row.id,
             .params = "alpha, at most",
             .unit = "elements",
             .value = std::max(alpha.value + alpha.error, 0.01),
             .reference = "paper",
             .reference_value = kPaperAlpha,
             .target = row.target,
             .note = fmt::format("a thread and iteration: {:.2f} +- {:.2f}; an element is {:.3f} "
                                 "+- {:.3f} ns; the model is off by {:.2f} % at the worst",
                                 alpha.value, alpha.error, element.value, element.error,
                                 times.worst_percent())});
}

}  // namespace sterna::bench
