// thread.reuse: table T4 of paper 000 (Marcel, 1996): creating threads, many and not run, on stacks
// of threads that have ended, against fresh ones. There 60 us against 900.
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/control.h"

namespace sterna::bench {
namespace {

constexpr int kThreads = 1000;  // As many as a worker keeps stacks for.

struct ReuseTimes {
  std::vector<double> fresh = {}, reused = {};

  /// Time of one creation. The threads are held, so that they do not run before all are there.
  static double create_ns() {
    std::vector<threads::Thread*> all(kThreads);
    const double time = ns_per(kThreads, [&] {
      for (threads::Thread*& thread : all) {
        thread = spawn([](void*) {}, nullptr, {.held = true});
      }
    });
    for (threads::Thread* const thread : all) {
      threads::unhold(*thread);
    }
    for (threads::Thread* const thread : all) {
      threads::join(*thread);
    }
    return time;
  }

  /// In a team that has had no threads of this size but this one.
  static void run(void* argument) {
    auto& its = *static_cast<ReuseTimes*>(argument);
    its.fresh.push_back(create_ns());
    its.reused.push_back(create_ns());
  }
};

}  // namespace

void run_reuse(const Row& row, Bench& bench) {
  ReuseTimes times;
  for (int round = bench.rounds(15); round > 0; --round) {
    if (!run_on_team(row, bench, ReuseTimes::run, &times)) {
      return;
    }
  }
  bench.add({.id = row.id,
             .params = "1000 threads",
             .unit = "ns",
             .value = median(times.reused),
             .reference = "creation on fresh stacks",
             .reference_value = median(times.fresh),
             .target = row.target});
}

}  // namespace sterna::bench
