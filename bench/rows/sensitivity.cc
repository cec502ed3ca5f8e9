// The simulator's constants are ours: what part of the work waits for memory, how much longer that
// takes on another node, what a cold cache costs, how uneven pieces are. Here they are varied, so
// that what is claimed of a policy is claimed of all of them. Where they come from: docs/papers.md.
#include "bench/rows/sensitivity.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/statistics.h"
#include "sched/simulator.h"

namespace sterna::bench {
namespace {

/// A sweep in quick runs has one point.
std::span<const double> points(const Bench& bench, std::span<const double> all) {
  return bench.options().quick ? all.first(1) : all;
}

/// The machine on which a policy does worst.
struct Worst {
  double ratio = 0;
  double least = 1e300;
  int count = 0;
  std::string where = {};

  void add(double its_ratio, const std::string& its_where) {
    ++count;
    least = std::min(least, its_ratio);
    if (its_ratio > ratio) {
      ratio = its_ratio;
      where = its_where;
    }
  }
  void print(const Row& row, Bench& bench, const std::string& params, const char* reference,
             double target) const {
    bench.add({.id = row.id,
               .params = fmt::format("{}, worst of {} machines", params, count),
               .unit = "x",
               .value = ratio,
               .reference = reference,
               .reference_value = 1,
               .target = target,
               .note = fmt::format("{}; on the others from {:.3f}", where, least)});
  }
};

/// Seconds of virtual time; empty: `figure` says why.
std::optional<sched::SimulationResult> run(const char* topology, const char* policy,
                                           const sched::Workload& workload) {
  auto result = sched::simulate({.topology = topology, .policy = policy}, workload);
  return result ? std::optional{result.value()} : std::nullopt;
}

struct Heat {
  double memory_part, remote_factor, jitter;
};

/// Makespan of the 16 strips on 4 nodes of 4, in seconds.
double conduction_s(const char* policy, std::uint32_t bubble_size, bool is_fixed, const Heat& of) {
  sched::Workload workload = sched::conduction(16, bubble_size, is_fixed);
  workload.memory_part = of.memory_part;
  workload.remote_factor = of.remote_factor;
  workload.jitter = of.jitter;
  const auto result = run("node:4 core:4 pu:1", policy, workload);
  return result ? static_cast<double>(result->makespan_ns) * 1e-9 : 0;
}

/// Time of one point of a step of heat conduction in a cube of `side` points.
double stencil_ns(int side, int steps) {
  const auto width = static_cast<std::size_t>(side);
  std::vector<double> from(width * width * width, 1.0);
  std::vector<double> to = from;
  const std::uint64_t begin = now_ns();
  for (int step = 0; step < steps; ++step) {
    for (std::size_t k = 1; k + 1 < width; ++k) {
      for (std::size_t j = 1; j + 1 < width; ++j) {
        const double* const f = from.data() + (k * width + j) * width;
        double* const t = to.data() + (k * width + j) * width;
        for (std::size_t i = 1; i + 1 < width; ++i) {
          t[i] = f[i] + 0.1 * (f[i - 1] + f[i + 1] + *(f + i - width) + f[i + width] +
                               *(f + i - width * width) + f[i + width * width] - 6 * f[i]);
        }
      }
    }
    std::swap(from, to);
  }
  const double inner = static_cast<double>(side - 2);
  return static_cast<double>(now_ns() - begin) / (inner * inner * inner * steps);
}

/// The part of conduction's work that waits for memory on this machine.
double measured_memory_part(Bench& bench) {
  std::vector<double> near;
  std::vector<double> far;
  for (int round = bench.rounds(7); round > 0; --round) {
    near.push_back(stencil_ns(34, bench.options().quick ? 2 : 200));  // 0.6 MB: in the cache.
    far.push_back(stencil_ns(bench.options().quick ? 66 : 162, 2));   // 68 MB.
  }
  return std::clamp(1 - median(near) / median(far), 0.0, 0.95);
}

}  // namespace

void add_conduction_sweep(const Row& row, Bench& bench) {
  static constexpr double kRemote[] = {3, 1, 1.4, 2, 5};
  static constexpr double kMemory[] = {0.25, 0.05, 0.1, 0.4, 0.6};
  static constexpr double kJitter[] = {0.0125, 0.002, 0.05};
  Worst by_hand;
  Worst opportunistic;
  for (const double remote : points(bench, kRemote)) {
    for (const double memory : points(bench, kMemory)) {
      for (const double jitter : points(bench, kJitter)) {
        const Heat heat{.memory_part = memory, .remote_factor = remote, .jitter = jitter};
        const std::string where =
            fmt::format("NUMA factor {}, memory part {}, jitter {}", remote, memory, jitter);
        const double bubbles = conduction_s("burst", 4, false, heat);
        by_hand.add(bubbles / conduction_s("flat", 0, true, heat), where);
        opportunistic.add(bubbles / conduction_s("flat", 0, false, heat), where);
      }
    }
  }
  by_hand.print(row, bench, "bubbles", "threads fixed by hand", row.target);
  opportunistic.print(row, bench, "bubbles", "opportunistic", 1.0);
  const double memory_part = measured_memory_part(bench);
  for (const double remote : points(bench, kRemote)) {
    const Heat heat{.memory_part = memory_part, .remote_factor = remote, .jitter = 0.0125};
    bench.add({.id = row.id,
               .params = fmt::format("NUMA factor {}, memory part measured here: {:.2f}", remote,
                                     heat.memory_part),
               .unit = "s (virtual)",
               .value = conduction_s("burst", 4, false, heat),
               .reference = "opportunistic",
               .reference_value = conduction_s("flat", 0, false, heat)});
  }
}

void add_lu_sweep(const Row& row, Bench& bench) {
  static constexpr double kRemote[] = {1.4, 1, 3};
  static constexpr double kColdUs[] = {160, 0, 10, 330};
  static constexpr double kJitter[] = {0.15, 0.05, 0.25};
  const auto speedup = [](const char* policy, std::uint32_t tasks, double remote, double cold_us,
                          double jitter) {
    sched::Workload workload = sched::lu_tasks(tasks, 4);
    workload.remote_factor = remote;
    workload.cold_ns = static_cast<std::uint64_t>(cold_us * 1000);
    workload.jitter = jitter;
    const auto result = run("node:2 core:2 pu:1", policy, workload);
    return result ? result->speedup : 1e-9;
  };
  Worst alone;
  for (const double remote : points(bench, kRemote)) {
    for (const double cold_us : points(bench, kColdUs)) {
      for (const double jitter : points(bench, kJitter)) {
        alone.add(
            speedup("gang", 1, remote, cold_us, jitter) /
                speedup("gang", 8, remote, cold_us, jitter),
            fmt::format("NUMA factor {}, cold cache {} us, jitter {}", remote, cold_us, jitter));
      }
    }
  }
  alone.print(row, bench, "8 tasks under gangs", "one task alone", 1 / 0.95);
  if (bench.options().quick) {
    return;
  }
  for (const char* const slice : {"0.2", "2", "20", "200"}) {
    bench.add({.id = row.id,
               .params = fmt::format("8 tasks of 4 threads, gang, slice {} ms", slice),
               .unit = "speed-up",
               .value = speedup(fmt::format("gang(slice={})", slice).c_str(), 8, 1.4, 160, 0.15),
               .reference = "one task alone",
               .reference_value = speedup("gang", 1, 1.4, 160, 0.15),
               .more_is_better = true});
  }
}

}  // namespace sterna::bench
