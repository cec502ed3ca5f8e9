// thread.spawn.tbb: fork-join recursion and an unforeseeable tree, by seeds on one, two and all
// processors, against tasks of oneTBB. The peer's program is compiled when the row runs.
#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "bench/contest.h"
#include "bench/process.h"
#include "bench/programs/tree.h"
#include "bench/rows/on_team.h"
#include "bench/rows/recursion.h"
#include "bench/statistics.h"
#include "threads/seeds/seed.h"

namespace sterna::bench {
namespace {

long count_tree(TreeNode node);

struct Subtree {
  threads::Seed seed;
  TreeNode root;
  long count;

  void plant(TreeNode node) {
    root = node;
    threads::plant(
        seed,
        [](void* subtree) {
          auto& its = *static_cast<Subtree*>(subtree);
          its.count = count_tree(its.root);
        },
        this);
  }
};

long count_tree(TreeNode node) {
  if (!tree_has_children(node)) {
    return 1;
  }
  Subtree subtrees[kTreeChildren];
  for (int i = 1; i < kTreeChildren; ++i) {
    subtrees[i].plant(tree_child(node, i));
  }
  long sum = 1 + count_tree(tree_child(node, 0));
  for (int i = kTreeChildren - 1; i > 0; --i) {
    threads::join(subtrees[i].seed);
    sum += subtrees[i].count;
  }
  return sum;
}

long count_from_root() {
  std::vector<Subtree> subtrees(kTreeRootChildren);
  for (int i = 0; i < kTreeRootChildren; ++i) {
    subtrees[static_cast<std::size_t>(i)].plant(tree_child(tree_root(), i));
  }
  long sum = 1;
  for (std::size_t i = subtrees.size(); i > 0; --i) {
    threads::join(subtrees[i - 1].seed);
    sum += subtrees[i - 1].count;
  }
  return sum;
}

struct SpawnTimes {
  int number;
  int rounds;
  long nodes = 0;
  std::vector<double> recursion = {}, tree = {};

  static void run(void* argument) {
    auto& its = *static_cast<SpawnTimes*>(argument);
    fibonacci(20);
    for (int i = 0; i < its.rounds; ++i) {
      its.recursion.push_back(ns_per(
          1, [&] { check(fibonacci(its.number) >= 0, "a Fibonacci number is not negative"); }));
      its.tree.push_back(ns_per(1, [&] { its.nodes = count_from_root(); }));
    }
  }
};

/// The peer's program; compiled once.
Result<std::string> build_tbb(Bench& bench) {
  const std::string executable = bench.work_folder() + "/tasks";
  Result<Readings> compiled =
      run_command({.words = {"c++", "-O2", "-std=c++17", bench.program_folder() + "/tasks.cc", "-o",
                             executable, "-ltbb"}},
                  bench.work_folder());
  if (!compiled) {
    return Error{Errc::unsupported,
                 "oneTBB is not installed (libtbb-dev): " + compiled.error().text};
  }
  return executable;
}

/// Threads of oneTBB's program give themselves the priority that ours have; those of others inherit
/// it (`is_preferred`).
Result<Readings> run_program(Result<std::string>& program, Bench& bench, std::uint32_t workers,
                             int number, bool is_preferred) {
  if (!program) {
    return program.error();
  }
  return run_command({.words = {program.value(), fmt::to_string(bench.rounds(7)),
                                fmt::to_string(workers), fmt::to_string(number)},
                      .is_preferred = is_preferred},
                     bench.work_folder());
}

struct Programs {
  Result<std::string> tbb, api;
};

/// One figure of `row`: `value` of ours against what oneTBB's program says of `name`.
Figure compare(const Row& row, Result<Readings>& tbb, const char* name, std::string params,
               double value, double count) {
  Figure figure{.id = row.id,
                .params = std::move(params),
                .unit = "ns",
                .value = value / count,
                .reference = "oneTBB task_group",
                .target = row.target};
  if (tbb && tbb.value().contains(name)) {
    figure.reference_value = tbb.value().at(name) / count;
  } else {
    figure.note = tbb ? "its program failed" : tbb.error().text;
  }
  return figure;
}

/// With so many workers; `aim_ns` of the recursion, 0: there is none.
void run_workers(const Row& row, Bench& bench, Programs& programs, std::uint32_t workers,
                 double aim_ns) {
  const int number = bench.rounds(kFibonacciNumber) == 1 ? 16 : kFibonacciNumber;
  SpawnTimes times{.number = number, .rounds = bench.rounds(7)};
  if (!run_on_team(row, bench, SpawnTimes::run, &times, {.worker_count = workers})) {
    return;
  }
  Result<Readings> api = run_program(programs.api, bench, workers, number, true);
  Result<Readings> tbb = run_program(programs.tbb, bench, workers, number, false);
  const auto add = [&](const char* name, const char* what, double value, double count) {
    const std::string params =
        fmt::format("{}, {} worker{}", what, workers, workers == 1 ? "" : "s");
    Figure figure = compare(row, tbb, name, params, value, count);
    bench.add(figure);
    if (api && api.value().contains(name)) {
      bench.add(compare(row, tbb, name, params + ", C API", api.value().at(name), count));
    }
    return figure;
  };
  const Figure recursion = add("fib", "recursion", median(times.recursion), spawn_count(number));
  if (aim_ns != 0) {
    bench.add_aim(recursion, aim_ns);
  }
  add("tree", "uneven tree", median(times.tree), static_cast<double>(times.nodes));
}

}  // namespace

void run_spawn_tbb(const Row& row, Bench& bench) {
  const std::uint32_t processors = std::max(std::thread::hardware_concurrency(), 1U);
  Programs programs{.tbb = build_tbb(bench),
                    .api = build_program(bench, Maker::sterna, "seeds")};
  run_workers(row, bench, programs, 1, 35);
  if (processors >= 2) {
    run_workers(row, bench, programs, 2, 18);
  }
  if (processors > 2) {
    run_workers(row, bench, programs, processors, 0);
  }
}

}  // namespace sterna::bench
