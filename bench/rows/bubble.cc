// bubble.overhead and paper.003.t1: what the scheduling of bubbles costs threads of one worker, in
// a bubble against without one, and against kernel threads on one processor.
#include <algorithm>

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/preferred.h"
#include "bench/statistics.h"
#include "memory/iso_space.h"
#include "sched/scheduler.h"
#include "threads/sync/barrier.h"
#include "threads/sync/semaphore.h"
#include "threads/this_thread.h"

namespace sterna::bench {
namespace {

/// What threads of a bubble do among themselves.
enum class Among { alone, yield, wake, barrier };

struct OverheadTimes {
  Among what;
  int rounds;
  sched::Scheduler& scheduler;
  double (*meanwhile)() = nullptr;  // A reference of another kind, or null.
  Pairs bare = {}, other = {};      // In a bubble, against without, and against that.

  static constexpr int kTurns = 20'000;
  static constexpr std::uint32_t kThreadsMax = 8;

  [[nodiscard]] std::uint32_t thread_count() const noexcept {
    return what == Among::barrier ? kThreadsMax : what == Among::alone ? 1 : 2;
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
        if (what == Among::yield || what == Among::alone) {
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
      // The better of each, as take_turns() has it: who comes first finds the caches of others, of
      // kernel threads that came and went for example, and is slower for that.
      const double first = its.turn_ns(true);
      const double second = its.turn_ns(false);
      const double third = its.turn_ns(false);
      const double fourth = its.turn_ns(true);
      its.bare.add(std::min(first, fourth), std::min(second, third));
      if (its.meanwhile != nullptr) {
        its.other.add(first, its.meanwhile());
      }
    }
  }
};

/// On a team of its own: one worker, and a policy that leaves it everything. Empty: `figure` says
/// why.
std::optional<OverheadTimes> measure(Bench& bench, Among what, double (*meanwhile)(),
                                     Figure& figure) {
  auto space = memory::IsoSpace::open({});
  auto topology = topology::Topology::synthetic("pu:1");
  if (!space || !topology) {
    figure.note = !space ? space.error().text : topology.error().text;
    return {};
  }
  auto scheduler = sched::Scheduler::open(
      {.topology = topology.value().get(), .workers = topology.value()->pus()});
  const Preferred preferred;
  auto team = threads::Team::open(
      {.worker_count = 1, .dispatch = scheduler.value().get(), .iso_space = space.value().get()});
  if (!team) {
    figure.note = team.error().text;
    return {};
  }
  scheduler.value()->attach(*team.value());
  OverheadTimes times{.what = what,
                      .rounds = bench.rounds(31),
                      .scheduler = *scheduler.value(),
                      .meanwhile = meanwhile};
  auto thread = team.value()->spawn({.stack_bytes = 256 * 1024}, OverheadTimes::run, &times);
  check(thread.has_value(), "the benchmark's thread starts");
  threads::join(*thread.value());
  return times;
}

void add_overhead(const Row& row, Bench& bench, Among what, const char* params) {
  Figure figure{.id = row.id,
                .params = params,
                .unit = "ns",
                .reference = "the same without a bubble",
                .target = row.target};
  if (const auto times = measure(bench, what, nullptr, figure); times) {
    figure.value = times->bare.our_median();
    figure.reference_value = times->bare.reference_median();
  }
  bench.add(figure);
}

/// A yield of kernel threads that have one processor for all of them: that of the first.
template <int kCount>
double kernel_yield_ns() {
  constexpr int kTurns = 10'000;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(std::max(::sched_getcpu(), 0), &here);
  pthread_barrier_t begin;
  pthread_barrier_init(&begin, nullptr, kCount);
  const auto main = [](void* barrier) -> void* {
    pthread_barrier_wait(static_cast<pthread_barrier_t*>(barrier));
    for (int i = 0; i < kTurns; ++i) {
      ::sched_yield();
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof here, &here);
  pthread_t all[kCount];
  const std::uint64_t start = now_ns();
  for (pthread_t& thread : all) {
    check(pthread_create(&thread, &attributes, main, &begin) == 0,
          "the benchmark's kernel thread starts");
  }
  for (const pthread_t thread : all) {
    pthread_join(thread, nullptr);
  }
  const std::uint64_t end = now_ns();
  pthread_attr_destroy(&attributes);
  pthread_barrier_destroy(&begin);
  return static_cast<double>(end - start) / (kCount * kTurns);
}

}  // namespace

void run_bubble_overhead(const Row& row, Bench& bench) {
  add_overhead(row, bench, Among::yield, "yield, 2 threads, 1 worker");
  add_overhead(row, bench, Among::wake, "wake and wait, 2 threads, 1 worker");
  add_overhead(row, bench, Among::barrier, "barrier of 8 threads, 1 worker");
}

void run_paper_003_t1(const Row& row, Bench& bench) {
  // There 531 ns in a bubble, 510 without, 1230 for kernel threads; of these 247 to find the next.
  struct Line {
    Among what;
    double (*kernel)();
    const char* params;
    bool is_judged;
  };
  static constexpr Line kLines[] = {
      {Among::alone, kernel_yield_ns<1>, "yield, nobody else: the search", false},
      {Among::yield, kernel_yield_ns<2>, "yield and switch, 2 threads", true}};
  for (const Line& line : kLines) {
    Figure figure{.id = row.id,
                  .params = line.params,
                  .unit = "ns",
                  .reference = "kernel threads",
                  .target = line.is_judged ? std::optional{row.target} : std::nullopt};
    const auto times = measure(bench, line.what, line.kernel, figure);
    if (times) {
      figure.value = times->other.our_median();
      figure.reference_value = times->other.reference_median();
    }
    bench.add(figure);
    figure.reference = "without a bubble";
    figure.target = line.is_judged ? std::optional{531.0 / 510} : std::nullopt;
    if (times) {
      figure.value = times->bare.our_median();
      figure.reference_value = times->bare.reference_median();
    }
    bench.add(figure);
  }
}

}  // namespace sterna::bench
