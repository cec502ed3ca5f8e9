// What tasks of oneTBB cost, on as many processors as named: prints the medians of several rounds,
// in ns: fork-join recursion without a cutoff, and a tree that nobody can foresee.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <sched.h>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

#include "tree.h"

namespace {

long fib(int n) {
  if (n < 2) {
    return n;
  }
  long left = 0;
  tbb::task_group group;
  group.run([&] { left = fib(n - 1); });
  const long right = fib(n - 2);
  group.wait();
  return left + right;
}

long count_tree(TreeNode node) {
  if (!tree_has_children(node)) {
    return 1;
  }
  long counts[kTreeChildren] = {};
  tbb::task_group group;
  for (int i = 1; i < kTreeChildren; ++i) {
    group.run([&, i] { counts[i] = count_tree(tree_child(node, i)); });
  }
  counts[0] = count_tree(tree_child(node, 0));
  group.wait();
  return std::accumulate(counts, counts + kTreeChildren, 1L);
}

long count_from_root() {
  std::vector<long> counts(kTreeRootChildren);
  tbb::task_group group;
  for (int i = 0; i < kTreeRootChildren; ++i) {
    group.run([&, i] { counts[i] = count_tree(tree_child(tree_root(), i)); });
  }
  group.wait();
  return std::accumulate(counts.begin(), counts.end(), 1L);
}

/// Each of its threads on a processor of its own, with real-time priority where that is allowed, as
/// the workers it is compared with. Not before it is there: one that is born with that priority may
/// wait for the processor that its maker computes on.
class Placement : public tbb::task_scheduler_observer {
 public:
  explicit Placement(tbb::task_arena& arena) : tbb::task_scheduler_observer{arena} {
    observe(true);
  }
  ~Placement() override { observe(false); }
  void on_scheduler_entry(bool) override {
    const int slot = tbb::this_task_arena::current_thread_index();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(slot), &one);
    const sched_param priority{.sched_priority = 1};
    (void)::sched_setaffinity(0, sizeof one, &one);
    (void)::sched_setscheduler(0, SCHED_FIFO, &priority);
    arrived_.fetch_or(1U << slot);
  }
  [[nodiscard]] bool are_there(int count) const { return arrived_.load() == (1U << count) - 1; }

 private:
  std::atomic<unsigned> arrived_{0};
};

/// Median over rounds of the time of the whole.
template <typename Operation>
double median_ns(int rounds, Operation operation) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    operation();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int processors = argc > 2 ? std::atoi(argv[2]) : 2;
  const int n = argc > 3 ? std::atoi(argv[3]) : kFibonacciNumber;
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(processors)};
  tbb::task_arena arena{processors};
  Placement placement{arena};
  double result = 0;
  arena.execute([&] {
    for (int i = 0; i < 1000 && !placement.are_there(processors); ++i) {
      fib(20);
    }
    result = median_ns(rounds, [&] {
      if (fib(n) < 0) {
        std::abort();
      }
    });
  });
  std::printf("fib %.3f\n", result);
  long nodes = 0;
  arena.execute([&] { result = median_ns(rounds, [&] { nodes = count_from_root(); }); });
  std::printf("tree %.3f\nnodes %ld\n", result, nodes);
  return 0;
}
