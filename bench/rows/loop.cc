// loop.uneven: self-scheduled loops against oneTBB, OpenMP and equal blocks. The peers' program is
// compiled when the row runs.
#include "sched/loop.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "bench/process.h"
#include "bench/programs/uneven.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

constexpr std::uint32_t kWorkers = 2;
constexpr int kSamples = 5;

using Samples = std::map<sched::LoopScheme, std::vector<double>>;

constexpr std::array kSchemes{
    sched::LoopScheme::block,     sched::LoopScheme::dynamic,   sched::LoopScheme::guided,
    sched::LoopScheme::trapezoid, sched::LoopScheme::factoring, sched::LoopScheme::affinity,
};

double run_once(sched::LoopScheme scheme) {
  return ns_per(1, [&] {
    sched::run_loop(
        *threads::self()->team, 0, kUnevenTurns, {.scheme = scheme},
        [](void*, std::uint64_t begin, std::uint64_t end) { do_uneven(begin, end); }, nullptr);
  });
}

/// The best of some, as the peers' program does, after one that wakes the workers.
void measure(Samples& samples) {
  const std::uint64_t begin = now_ns();
  for (const sched::LoopScheme scheme : kSchemes) {
    (void)run_once(scheme);
    double best = run_once(scheme);
    for (int i = 1; i < kSamples; ++i) {
      best = std::min(best, run_once(scheme));
    }
    samples[scheme].push_back(best);
  }
  rest_since(begin);
}

Result<std::string> build_peer(Bench& bench) {
  const std::string executable = bench.work_folder() + "/loop";
  std::vector<std::string> words{
      "c++", "-O2",     "-std=c++17", "-fopenmp", bench.program_folder() + "/loop.cc",
      "-o",  executable};
  std::vector<std::string> with_tbb = words;
  with_tbb.insert(with_tbb.end(), {"-DWITH_TBB", "-ltbb"});
  if (run_command({.words = with_tbb}, bench.work_folder())) {
    return executable;
  }
  Result<Readings> compiled = run_command({.words = words}, bench.work_folder());
  if (!compiled) {
    return Error{Errc::unsupported, "no compiler with OpenMP: " + compiled.error().text};
  }
  return executable;
}

}  // namespace

void run_loop_uneven(const Row& row, Bench& bench) {
  Samples ours;
  std::map<std::string, std::vector<double>> theirs;
  Result<std::string> program = build_peer(bench);
  for (int round = bench.rounds(7); round > 0; --round) {
    if (!on_team(row, bench, [&] { measure(ours); }, {.worker_count = kWorkers})) {
      return;
    }
    if (program) {
      Result<Readings> readings =
          run_command({.words = {program.value(), std::to_string(kSamples)}}, bench.work_folder());
      for (const char* const name : {"omp_dynamic", "omp_guided", "tbb"}) {
        if (readings && readings.value().contains(name)) {
          theirs[name].push_back(readings.value()[name]);
        }
      }
    }
  }
  std::string best;
  for (auto& [name, values] : theirs) {
    best = best.empty() || median(values) < median(theirs[best]) ? name : best;
  }
  for (const sched::LoopScheme scheme : kSchemes) {
    const bool is_static = scheme == sched::LoopScheme::block;
    Figure figure{.id = row.id,
                  .params = fmt::format("{}, {} workers", to_string(scheme), kWorkers),
                  .unit = "ns",
                  .value = median(ours[scheme]),
                  .reference = best.empty() ? "TBB, OpenMP" : best};
    if (!is_static) {
      figure.target = row.target;
      figure.note = fmt::format("{:.2f} of equal blocks",
                                median(ours[scheme]) / median(ours[sched::LoopScheme::block]));
    }
    if (!best.empty()) {
      figure.reference_value = median(theirs[best]);
    } else {
      figure.note = program ? "its program failed" : program.error().text;
    }
    bench.add(figure);
  }
}

}  // namespace sterna::bench
