// bubble.overhead, measured; gang.fairness, conduction and lu.tasks: figures of paper 003 with the
// real engine and policies over virtual processors, in virtual time (sched/simulator.h): the same
// on every machine.
#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/preferred.h"
#include "bench/statistics.h"
#include "memory/iso_space.h"
#include "sched/scheduler.h"
#include "sched/simulator.h"
#include "threads/sync/barrier.h"
#include "threads/sync/semaphore.h"
#include "threads/this_thread.h"

namespace sterna::bench {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Seconds of virtual time; empty: `figure` says why.
std::optional<sched::SimulationResult> run(const sched::SimulationOptions& options,
                                           const sched::Workload& workload, Figure& figure) {
  auto result = sched::simulate(options, workload);
  if (!result) {
    figure.note = result.error().text;
    return {};
  }
  return result.value();
}

/// What threads of a bubble do among themselves.
enum class Among { yield, wake, barrier };

struct OverheadTimes {
  Among what;
  int rounds;
  sched::Scheduler& scheduler;
  std::vector<double> bare = {}, held = {};

  static constexpr int kTurns = 20'000;
  static constexpr std::uint32_t kThreadsMax = 8;

  [[nodiscard]] std::uint32_t thread_count() const noexcept {
    return what == Among::barrier ? kThreadsMax : 2;
  }

  /// One measurement: its threads and what they share.
  struct Group {
    explicit Group(const OverheadTimes& times) : what{times.what}, barrier{times.thread_count()} {}
    const Among what;
    threads::Semaphore turn[2];
    threads::Barrier barrier;
    std::atomic<std::uint32_t> next_member{0};

    static void main(void* group) { static_cast<Group*>(group)->run(); }
    void run() {
      const std::uint32_t me = next_member.fetch_add(1, std::memory_order_relaxed);
      for (int i = 0; i < kTurns; ++i) {
        if (what == Among::yield) {
          threads::yield();
        } else if (what == Among::barrier) {
          (void)barrier.arrive_and_wait();
        } else {
          turn[1 - me].release();
          turn[me].acquire();
        }
      }
    }
  };

  /// Threads that have to do with each other; with entities in a bubble, or without.
  [[nodiscard]] double turn_ns(bool has_bubble) const {
    Group group{*this};
    sched::Bubble bubble;
    sched::Entity entities[kThreadsMax];
    if (has_bubble) {
      check(scheduler.engine().insert(scheduler.root(), bubble).has_value(), "it is inserted");
    }
    threads::Thread* started[kThreadsMax];
    const std::uint64_t begin = now_ns();
    for (std::uint32_t i = 0; i < thread_count(); ++i) {
      threads::ThreadOptions options;
      if (has_bubble) {
        check(scheduler.engine().insert(bubble, entities[i]).has_value(), "it is inserted");
        options.entity = &entities[i];
      }
      auto thread = threads::self()->team->spawn(options, Group::main, &group);
      check(thread.has_value(), "the benchmark's thread starts");
      started[i] = thread.value();
    }
    for (std::uint32_t i = 0; i < thread_count(); ++i) {
      threads::join(*started[i]);
    }
    const std::uint64_t end = now_ns();
    if (has_bubble) {
      scheduler.engine().remove(bubble);
    }
    return static_cast<double>(end - begin) / (thread_count() * kTurns);
  }
  static void run(void* argument) {
    auto& its = *static_cast<OverheadTimes*>(argument);
    for (int i = 0; i < its.rounds; ++i) {
      its.bare.push_back(its.turn_ns(false));
      its.held.push_back(its.turn_ns(true));
    }
  }
};

/// On a team of its own: one worker, and a policy that leaves it everything.
void measure_overhead(const Row& row, Bench& bench, Among what, const char* params) {
  Figure figure{.id = row.id,
                .params = params,
                .unit = "ns",
                .reference = "the same without a bubble",
                .target = row.target};
  auto space = memory::IsoSpace::open({});
  auto topology = topology::Topology::synthetic("pu:1");
  if (!space || !topology) {
    figure.note = !space ? space.error().text : topology.error().text;
    bench.add(figure);
    return;
  }
  auto scheduler = sched::Scheduler::open(
      {.topology = topology.value().get(), .workers = topology.value()->pus()});
  const Preferred preferred;
  auto team = threads::Team::open(
      {.worker_count = 1, .dispatch = scheduler.value().get(), .iso_space = space.value().get()});
  if (!team) {
    figure.note = team.error().text;
    bench.add(figure);
    return;
  }
  scheduler.value()->attach(*team.value());
  OverheadTimes times{.what = what, .rounds = bench.rounds(31), .scheduler = *scheduler.value()};
  auto thread = team.value()->spawn({.stack_bytes = 256 * 1024}, OverheadTimes::run, &times);
  check(thread.has_value(), "the benchmark's thread starts");
  threads::join(*thread.value());
  figure.value = median(times.held);
  figure.reference_value = median(times.bare);
  bench.add(figure);
}

}  // namespace

void run_bubble_overhead(const Row& row, Bench& bench) {
  measure_overhead(row, bench, Among::yield, "yield, 2 threads, 1 worker");
  measure_overhead(row, bench, Among::wake, "wake and wait, 2 threads, 1 worker");
  measure_overhead(row, bench, Among::barrier, "barrier of 8 threads, 1 worker");
}

void run_gang_fairness(const Row& row, Bench& bench) {
  // Paper 003 fig. 6: 5, 6 and 7 threads on 4 processors. All gangs want more than the time they
  // have.
  const std::uint64_t slice_ns = 10 * kMs;
  const sched::Workload workload = sched::gangs({5, 6, 7}, 400 * kMs);
  Figure figure{.id = row.id,
                .params = "5, 6, 7 threads, 4 processors",
                .unit = "ns (virtual)",
                .reference = "a third of the machine",
                .target = row.target};
  const auto result = run({.topology = "pu:4",
                           .policy = "gang(slice=10)",
                           .quantum_ns = slice_ns / 5,
                           .seed = 1,
                           .end_ns = 120 * slice_ns},
                          workload, figure);
  if (result) {
    double most = 0;
    double sum = 0;
    for (const auto& [first, count] : {std::pair{0, 5}, std::pair{5, 6}, std::pair{11, 7}}) {
      double gang = 0;
      for (int i = first; i < first + count; ++i) {
        gang += static_cast<double>(result->thread_ns[static_cast<std::size_t>(i)]);
      }
      most = std::max(most, gang);
      sum += gang;
    }
    figure.value = most;
    figure.reference_value = sum / 3;
  }
  bench.add(figure);
}

void run_conduction(const Row& row, Bench& bench) {
  constexpr const char* kMachine = "node:4 core:4 pu:1";
  const auto seconds = [&](const char* policy, const sched::Workload& workload, Figure& figure) {
    const auto result = run({.topology = kMachine, .policy = policy}, workload, figure);
    return result ? std::optional{static_cast<double>(result->makespan_ns) * 1e-9} : std::nullopt;
  };
  Figure figure{.id = row.id,
                .params = "bubbles of 4, burst; 16 processors",
                .unit = "s (virtual)",
                .reference = "threads fixed by hand",
                .target = row.target};
  figure.value = seconds("burst", sched::conduction(16, 4, false), figure);
  figure.reference_value = seconds("flat", sched::conduction(16, 0, true), figure);
  bench.add(figure);
  figure.reference = "opportunistic";
  figure.target = 1 / 1.49;
  figure.reference_value = seconds("flat", sched::conduction(16, 0, false), figure);
  bench.add(figure);
}

void run_lu_tasks(const Row& row, Bench& bench) {
  const auto measure = [&](const char* policy, std::uint32_t tasks, std::uint32_t threads,
                           bool is_judged) {
    Figure figure{.id = row.id,
                  .params = fmt::format("{} tasks of {} threads, {}", tasks, threads, policy),
                  .unit = "speed-up",
                  .reference = "3.5 (paper 003 fig. 8)",
                  .reference_value = 3.5,
                  .more_is_better = true};
    if (is_judged) {
      figure.target = row.target;
    }
    const auto result = run({.topology = "node:2 core:2 pu:1", .policy = policy},
                            sched::lu_tasks(tasks, threads), figure);
    if (result) {
      figure.value = result->speedup;
    }
    bench.add(figure);
  };
  for (const std::uint32_t tasks : {1, 2, 4, 8}) {
    measure("gang", tasks, 4, true);
  }
  measure("gang(numa)", 8, 2, true);
  measure("gang", 8, 2, false);
  measure("flat", 8, 4, false);
}

}  // namespace sterna::bench
