// paper.000.f2.2: what a thread costs, and the cache, by the model of paper 000. Sweeps over an
// array in one dimension, a block a thread, each doing all its sweeps. There 1024 sweeps over
// 262,144 doubles, 256 times its cache; here 4 times the second-level cache, which is the step that
// can be seen (the first is hidden by prefetching), and as many sweeps as make about as many
// updates.
//
//   time = threads * k + sweeps * doubles * (c2 + missed * (c2' - c2))
//
// k is what a thread costs, its control flow included; c1 = k / sweeps. With w doubles a thread, l
// of them are found in the cache: all if w <= n_c, none if w >= r n_c, and between these l = n_c (r
// - w / n_c) / (r - 1). The paper's cache is mapped directly: r = 2. Here r and n_c are fitted too.
#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/rows/on_team.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

constexpr int kCounts[] = {1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
constexpr int kMost = 2048;

/// Doubles that fit in the second-level cache.
std::size_t cache_doubles() {
  const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > 0 ? bytes : 1 << 20) / sizeof(double);
}

__attribute__((noinline)) void sweep(double* array, std::size_t count, int t) {
  for (std::size_t i = 0; i < count; ++i) {
    array[i] = array[i] * (t + 1) - array[i] * t;
  }
}

struct Granularity {
  explicit Granularity(bool is_quick)
      : sweeps{is_quick ? 2 : 1024}, array(cache_doubles() * 4, 1.5), times(std::size(kCounts)) {}

  void part(int count, int index, int its_sweeps) {
    const std::size_t size = array.size();
    double* const first =
        array.data() + size * static_cast<std::size_t>(index) / static_cast<std::size_t>(count);
    const double* const last =
        array.data() + size * static_cast<std::size_t>(index + 1) / static_cast<std::size_t>(count);
    for (int t = 1; t <= its_sweeps; ++t) {
      sweep(first, static_cast<std::size_t>(last - first), t);
    }
  }
  void in_blocks(int count, int its_sweeps) {
    for (int index = 0; index < count; ++index) {
      part(count, index, its_sweeps);
    }
  }
  void in_so_many_threads(int count, int its_sweeps) {
    in_threads(count, [&](int index) { as_program([&] { part(count, index, its_sweeps); }); });
  }
  /// On a thread of the team.
  void measure(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < times.size(); ++i) {
        take_turns(
            times[i], [&] { in_so_many_threads(kCounts[i], piece); }, [&] { in_blocks(1, piece); });
      }
      if (round % 2 == 0) {
        take_turns(
            most, [&] { in_so_many_threads(kMost, sweeps); }, [&] { in_blocks(kMost, sweeps); });
      }
    }
  }

  const int sweeps;
  // So many at a time, each with threads of its own, for the model: in the second that 1024 take
  // four times the clock of a shared machine may change.
  const int piece = (sweeps + 3) / 4;
  std::vector<double> array;
  // As kCounts, against the plain loop over the whole: how fast the machine was at that moment.
  std::vector<Pairs> times;
  Pairs most = {};  // Of kMost threads, against as many blocks in a plain loop.
};

struct Model {
  double cache = 0;                       // n_c, doubles.
  double edge = 0;                        // r.
  std::vector<double> coefficients = {};  // k, c2, c2' - c2.
  double error = 1e300;
};

/// Part of a block that is not found in the cache.
double missed_part(double block, double cache, double edge) {
  const double found = cache * (edge - block / cache) / (edge - 1);
  return block <= cache ? 0 : 1 - std::clamp(found / block, 0.0, 1.0);
}

Model fit_at(const Granularity& from, double cache, double edge) {
  const auto doubles = static_cast<double>(from.array.size());
  std::vector<double> wholes;
  for (const Pairs& pairs : from.times) {
    wholes.push_back(pairs.reference_median());
  }
  const double whole = median(wholes);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < from.times.size(); ++i) {
    const double work = doubles * from.piece;
    const double missed = missed_part(doubles / kCounts[i], cache, edge);
    samples.push_back(
        {whole * from.times[i].ratio(), {static_cast<double>(kCounts[i]), work, work * missed}});
  }
  Model model{.cache = cache, .edge = edge, .coefficients = fit(samples)};
  if (model.coefficients[2] < 0) {  // A cache does not make anything slower.
    for (Sample& sample : samples) {
      sample.terms.pop_back();
    }
    model.coefficients = fit(samples);
    model.coefficients.push_back(0);
  }
  model.error = worst_error(samples, model.coefficients);
  return model;
}

Model best_fit(const Granularity& from) {
  Model best;
  for (double share = 0.5; share <= 1.25; share += 0.0625) {
    for (const double edge : {1.125, 1.25, 1.5, 1.75, 2.0}) {
      Model model = fit_at(from, static_cast<double>(cache_doubles()) * share, edge);
      if (model.error < best.error) {
        best = std::move(model);
      }
    }
  }
  return best;
}

}  // namespace

void run_paper_000_f22(const Row& row, Bench& bench) {
  Granularity its{bench.options().quick};
  if (!on_team(row, bench, [&] { its.measure(bench.rounds(10)); },
               {.preempt = threads::PreemptMode::slice})) {
    return;
  }
  const Model model = best_fit(its);
  const double c1 = model.coefficients[0] / its.piece;
  const double c2 = model.coefficients[1];
  const auto doubles = static_cast<double>(its.array.size());
  bench.add({.id = row.id,
             .params = "model, worst error",
             .unit = "%",
             .value = 100 * model.error,
             .reference = "paper: 3 %",
             .reference_value = 3,
             .target = row.target,
             .note = fmt::format("c1 {:.3g} ns, c2 {:.3g} ns, c2' {:.3g} ns, n_c {:.0f} doubles, r "
                                 "{}; below 1 % from {:.0f} to {:.0f} threads",
                                 c1, c2, c2 + model.coefficients[2], model.cache, model.edge,
                                 doubles / model.cache, 0.01 * doubles * c2 / std::max(c1, 1e-6))});
  const double thread_ns = (its.most.our_median() - its.most.reference_median()) /
                           (static_cast<double>(kMost) * its.sweeps);
  bench.add({.id = row.id,
             .params = "2048 threads, cost of one a sweep",
             .unit = "doubles",
             .value = std::max(thread_ns / c2, 0.01),  // Less cannot be told from none.
             .reference = "paper: c1/c2 = 2.4",
             .reference_value = 2.4,
             .target = row.target,
             .note = "over the same blocks in a plain loop"});
  bench.add({.id = row.id,
             .params = "c1/c2, control flow included",
             .unit = "doubles",
             .value = std::max(c1 / c2, 0.01),
             .reference = "paper: 2.4",
             .reference_value = 2.4,
             .note = "the end of each loop is predicted wrongly, with threads and without"});
  bench.add({.id = row.id,
             .params = "2048 threads",
             .unit = "x",
             .value = its.most.ratio(),
             .reference = "the same blocks in a plain loop",
             .reference_value = 1});
}

}  // namespace sterna::bench
