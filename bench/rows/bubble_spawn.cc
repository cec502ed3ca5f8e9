// bubble.spawn: fork-join recursion by seeds in a thread of a bubble against the same in a thread
// without one, on one and two workers.
#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/preferred.h"
#include "bench/rows/recursion.h"
#include "bench/statistics.h"
#include "memory/iso_space.h"
#include "sched/scheduler.h"

namespace sterna::bench {
namespace {

struct Recursion {
  int number;
  double ns = 0;  // Of one seed.

  static void run(void* recursion) {
    auto& its = *static_cast<Recursion*>(recursion);
    fibonacci(its.number / 2);
    const std::uint64_t begin = now_ns();
    check(fibonacci(its.number) >= 0, "a Fibonacci number is not negative");
    its.ns = static_cast<double>(now_ns() - begin) / spawn_count(its.number);
  }
};

struct Comparison {
  int number;
  int rounds;
  sched::Scheduler& scheduler;
  Pairs pairs = {};

  [[nodiscard]] double seed_ns(bool has_bubble) const {
    Recursion recursion{number};
    sched::Bubble bubble;
    sched::Entity entity;
    threads::ThreadOptions options{.stack_bytes = 240 * 1024};
    if (has_bubble) {
      check(scheduler.engine().insert(scheduler.root(), bubble).has_value() &&
                scheduler.engine().insert(bubble, entity).has_value(),
            "they are inserted");
      scheduler.engine().submit(bubble);
      options.entity = &entity;
    }
    auto thread = threads::self()->team->spawn(options, Recursion::run, &recursion);
    check(thread.has_value(), "the benchmark's thread starts");
    threads::join(*thread.value());
    if (has_bubble) {
      scheduler.engine().remove(bubble);
    }
    return recursion.ns;
  }
  static void run(void* argument) {
    auto& its = *static_cast<Comparison*>(argument);
    for (int i = 0; i < its.rounds; ++i) {
      const double first = its.seed_ns(true);
      const double second = its.seed_ns(false);
      const double third = its.seed_ns(false);
      const double fourth = its.seed_ns(true);
      its.pairs.add(std::min(first, fourth), std::min(second, third));
    }
  }
};

/// Empty, or why it was not measured.
std::string measure(Bench& bench, std::uint32_t workers, Figure& figure) {
  auto space = memory::IsoSpace::open({});
  auto topology = topology::Topology::synthetic(fmt::format("pu:{}", workers));
  if (!space || !topology) {
    return !space ? space.error().text : topology.error().text;
  }
  auto scheduler = sched::Scheduler::open(
      {.topology = topology.value().get(), .workers = topology.value()->pus()});
  const Preferred preferred;
  auto team = threads::Team::open({.worker_count = workers,
                                   .dispatch = scheduler.value().get(),
                                   .iso_space = space.value().get()});
  if (!team) {
    return team.error().text;
  }
  scheduler.value()->attach(*team.value());
  const int rounds = bench.rounds(15);
  Comparison comparison{
      .number = rounds == 1 ? 14 : 24, .rounds = rounds, .scheduler = *scheduler.value()};
  auto thread = team.value()->spawn({.stack_bytes = 256 * 1024}, Comparison::run, &comparison);
  check(thread.has_value(), "the benchmark's thread starts");
  threads::join(*thread.value());
  figure.value = comparison.pairs.our_median();
  figure.reference_value = comparison.pairs.reference_median();
  return {};
}

}  // namespace

void run_bubble_spawn(const Row& row, Bench& bench) {
  for (const std::uint32_t workers : {1U, 2U}) {
    Figure figure{.id = row.id,
                  .params = fmt::format("recursion, {} worker{}", workers, workers == 1 ? "" : "s"),
                  .unit = "ns",
                  .reference = "the same without a bubble",
                  .target = row.target};
    figure.note = measure(bench, workers, figure);
    bench.add(figure);
  }
}

}  // namespace sterna::bench
