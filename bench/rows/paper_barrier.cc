// paper.000.f3, paper.000.f4, paper.002.x1: 1024 barriers among the threads of one process, and the
// gain of waking all at once. The whole workload of the paper, up to 2048 threads.
#include <cmath>

#include <fmt/format.h>

#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/scheduler.h"
#include "threads/sync/barrier.h"
#include "threads/sync/semaphore.h"

namespace sterna::bench {
namespace {

constexpr int kRounds = 1024;
// The paper's figures are without effects of the cache. Up to 32 threads here: of each a barrier
// touches about 11 lines, and all together fit the first level of any cache.
constexpr std::size_t kWithoutCacheEffect = 5;  // Of Curve::kCounts.
constexpr TeamShape kAsPm2{.preempt = threads::PreemptMode::slice};

/// As PM2's first barrier: who comes early waits at a semaphore, and the last one releases the
/// others one by one. Two of them take turns, so that nobody takes what is for the slow of the last
/// round.
class OneByOne {
 public:
  explicit OneByOne(std::uint32_t count) noexcept : count_{count} {}
  void arrive_and_wait() noexcept {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < count_) {
      turns_[round % 2].acquire();
      return;
    }
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_relaxed);
    turns_[round % 2].release(count_ - 1);
  }

 private:
  const std::uint32_t count_;
  std::atomic<std::uint32_t> arrived_{0};  // Acquire and release: what round_ is.
  std::atomic<std::uint32_t> round_{0};
  threads::Semaphore turns_[2];
};

/// The core of our barrier, waking all in one go or in a loop.
template <bool kInALoop>
class Core {
 public:
  explicit Core(std::uint32_t count) noexcept : count_{count} {}
  void arrive_and_wait() noexcept {
    threads::Thread* others = nullptr;
    threads::Thread& me = *threads::self();
    const bool has_waited = threads::suspend(me, [&]() noexcept {
      const SpinGuard guard{lock_};
      if (++arrived_ < count_) {
        sleepers_.push_back(me);
        return true;
      }
      arrived_ = 0;
      others = sleepers_.take_all();
      return false;
    });
    if (has_waited || others == nullptr) {
      return;
    }
    if constexpr (!kInALoop) {
      threads::make_chain_runnable(others);
    } else {
      while (others != nullptr) {
        threads::make_runnable(*std::exchange(others, others->next));
      }
    }
  }

 private:
  const std::uint32_t count_;
  SpinLock lock_;
  std::uint32_t arrived_ = 0;      // Guard: lock_.
  threads::SleeperRing sleepers_;  // Guard: lock_.
};

/// Time of one of the rounds; threads are there before and after. On a thread of the team.
template <typename Kind>
double barrier_ns(int count, int rounds) {
  Kind barrier{static_cast<std::uint32_t>(count)};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  in_threads(count, [&](int index) {
    barrier.arrive_and_wait();
    if (index == 0) {
      begin = now_ns();
    }
    for (int i = 0; i < rounds; ++i) {
      barrier.arrive_and_wait();
    }
    if (index == 0) {
      end = now_ns();
    }
  });
  return static_cast<double>(end - begin) / rounds;
}

/// The times of F3 and F4, by number of threads.
struct Curve {
  static constexpr int kCounts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  std::vector<double> ns = {};  // A barrier.

  bool measure(const Row& row, Bench& bench) {
    std::vector<std::vector<double>> times(std::size(kCounts));
    const int each = bench.options().quick ? 4 : kRounds;
    const bool done = on_team(
        row, bench,
        [&] {
          for (int round = bench.rounds(9); round > 0; --round) {
            // The small ones, of some tens of us, which a single interruption doubles, more often.
            for (int again = 0; again < 15; ++again) {
              const std::uint64_t begin = now_ns();
              for (std::size_t i = 0; i < kWithoutCacheEffect; ++i) {
                times[i].push_back(barrier_ns<threads::Barrier>(kCounts[i], each));
              }
              rest_since(begin);
            }
            for (std::size_t i = kWithoutCacheEffect; i < times.size(); ++i) {
              const std::uint64_t begin = now_ns();
              times[i].push_back(barrier_ns<threads::Barrier>(kCounts[i], each));
              rest_since(begin);
            }
          }
        },
        kAsPm2);
    if (done) {
      compare_in_turn(times);
    }
    for (std::size_t i = 0; done && i < times.size(); ++i) {
      ns.push_back(median(times[i]));
    }
    return done;
  }

  /// The small ones as parts of what all of them took in their turn: the clock of the machine and
  /// what its neighbours do change from turn to turn, for all of a turn alike.
  static void compare_in_turn(std::vector<std::vector<double>>& times) {
    std::vector<double> turns(times.front().size());
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      for (std::size_t i = 0; i < kWithoutCacheEffect; ++i) {
        turns[turn] += times[i][turn];
      }
    }
    const double usual = median(turns);
    for (std::size_t i = 0; i < kWithoutCacheEffect; ++i) {
      for (std::size_t turn = 0; turn < turns.size(); ++turn) {
        times[i][turn] *= usual / turns[turn];
      }
    }
  }
};

}  // namespace

void run_paper_000_f3(const Row& row, Bench& bench) {
  Curve curve;
  if (!curve.measure(row, bench)) {
    return;
  }
  // Linear: doubling the threads doubles the time.
  std::vector<Sample> logs;
  double exponent_32 = 0;
  for (std::size_t i = 0; i < curve.ns.size(); ++i) {
    bench.add({.id = row.id,
               .params = fmt::format("1024 barriers, {} threads", Curve::kCounts[i]),
               .unit = "ms",
               .value = curve.ns[i] * kRounds / 1e6});
    logs.push_back({std::log2(curve.ns[i]), {std::log2(Curve::kCounts[i]), 1}});
    if (i + 1 == kWithoutCacheEffect) {
      exponent_32 = fit(logs).front();
    }
  }
  Figure figure{.id = row.id,
                .params = "exponent of threads, 2 to 32",
                .unit = "",
                .value = exponent_32,
                .reference = "linear",
                .reference_value = 1,
                .target = row.target};
  bench.add(figure);
  figure.params = "exponent of threads, 2 to 2048";
  figure.value = fit(logs).front();
  figure.target.reset();
  bench.add(figure);
}

void run_paper_000_f4(const Row& row, Bench& bench) {
  Curve curve;
  if (!curve.measure(row, bench)) {
    return;
  }
  const auto model = [&](std::size_t first, std::size_t last) {
    std::vector<Sample> samples;
    for (std::size_t i = first; i < last; ++i) {
      samples.push_back({curve.ns[i], {Curve::kCounts[i] - 1.0, 1}});
    }
    const std::vector<double> coefficients = fit_evenly(samples);
    return std::pair{coefficients, 100 * worst_error(samples, coefficients)};
  };
  const auto add = [&](const char* params, std::size_t first, std::size_t last, bool is_judged) {
    const auto [coefficients, error] = model(first, last);
    bench.add(
        {.id = row.id,
         .params = params,
         .unit = "%",
         .value = error,
         .reference = "paper: 1.5 %",
         .reference_value = 1.5,
         .target = is_judged ? std::optional{row.target} : std::nullopt,
         .note = fmt::format("(T - 1) * {:.1f} ns + {:.0f} ns", coefficients[0], coefficients[1])});
  };
  add("model, worst error, 2 to 32", 0, kWithoutCacheEffect, true);
  add("model, worst error, 128 to 1024", kWithoutCacheEffect + 1, curve.ns.size() - 1, false);
  add("model, worst error, 2 to 2048", 0, curve.ns.size(), false);
}

void run_paper_002_x1(const Row& row, Bench& bench) {
  for (const int count : {64, 1024}) {
    Pairs loops;
    Pairs semaphores;
    const int rounds = bench.options().quick ? 4 : 60'000 / count;
    if (!on_team(
            row, bench,
            [&] {
              for (int round = bench.rounds(41); round > 0; --round) {
                const std::uint64_t begin = now_ns();
                const double bulk = barrier_ns<threads::Barrier>(count, rounds) / count;
                semaphores.add(bulk, barrier_ns<OneByOne>(count, rounds) / count);
                loops.add(barrier_ns<Core<false>>(count, rounds) / count,
                          barrier_ns<Core<true>>(count, rounds) / count);
                rest_since(begin);
              }
            },
            kAsPm2)) {
      return;
    }
    Figure figure{.id = row.id,
                  .params = fmt::format("{} threads, per thread", count),
                  .unit = "ns",
                  .value = semaphores.our_median(),
                  .reference = "a semaphore, released one by one",
                  .reference_value = semaphores.reference_median(),
                  .target = row.target};
    bench.add(figure);
    figure.target.reset();
    figure.params += ", core alone";
    figure.value = loops.our_median();
    figure.reference = "the same, waking one by one";
    figure.reference_value = loops.reference_median();
    bench.add(figure);
  }
}

}  // namespace sterna::bench
