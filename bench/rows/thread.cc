// thread.yield and thread.create: one worker, in this process.
#include <pthread.h>

#include "bench/rows/foreign_switch.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/context/context.h"

namespace sterna::bench {
namespace {

void yield_often(void* count) {
  for (int i = *static_cast<int*>(count); i > 0; --i) {
    threads::yield();
  }
}

double yield_ns(int thread_count) {
  int count = 40'000 / thread_count;
  std::vector<threads::Thread*> others(static_cast<std::size_t>(thread_count));
  return ns_per(count * thread_count, [&] {
    for (threads::Thread*& thread : others) {
      thread = spawn(yield_often, &count);
    }
    for (threads::Thread* const thread : others) {
      threads::join(*thread);
    }
  });
}

constinit threads::SavedContext main_context;
constinit threads::SavedContext other_context;

void bounce() noexcept {
  for (;;) {
    static_cast<void>(threads::switch_context(other_context, main_context, nullptr));
  }
}

double own_switch_ns(std::span<std::byte> stack) {
  constexpr int kCount = 20'000;
  threads::make_context(other_context, stack.data() + stack.size(), bounce);
  return ns_per(2 * kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      static_cast<void>(threads::switch_context(main_context, other_context, nullptr));
    }
  });
}

struct YieldTimes {
  int rounds;
  std::vector<double> two = {}, many = {}, own = {}, foreign = {};

  static void run(void* argument) {
    auto& its = *static_cast<YieldTimes*>(argument);
    alignas(64) std::byte stack[32 * 1024];
    for (int i = 0; i < its.rounds; ++i) {
      its.two.push_back(yield_ns(2));
      its.foreign.push_back(foreign_switch_ns(stack, 20'000));
      its.own.push_back(own_switch_ns(stack));
      its.many.push_back(yield_ns(1000));
    }
  }
};

struct CreateTimes {
  int rounds;
  std::vector<double> ours = {}, kernel = {};

  static void run(void* argument) {
    auto& its = *static_cast<CreateTimes*>(argument);
    constexpr int kOurs = 5'000;
    constexpr int kKernel = 50;
    for (int i = 0; i < its.rounds; ++i) {
      its.ours.push_back(ns_per(kOurs, [] {
        for (int k = 0; k < kOurs; ++k) {
          threads::join(*spawn([](void*) {}, nullptr));
        }
      }));
      its.kernel.push_back(ns_per(kKernel, [] {
        for (int k = 0; k < kKernel; ++k) {
          pthread_t thread{};
          check(pthread_create(
                    &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == 0,
                "the benchmark's kernel thread starts");
          pthread_join(thread, nullptr);
        }
      }));
    }
  }
};

}  // namespace

void run_yield(const Row& row, Bench& bench) {
  YieldTimes times{.rounds = bench.rounds(41)};
  if (!run_on_team(row, bench, YieldTimes::run, &times)) {
    return;
  }
  Figure figure{.id = row.id,
                .params = "2 threads",
                .unit = "ns",
                .value = median(times.two),
                .reference = "jump_fcontext",
                .target = row.target};
  if (const double foreign = median(times.foreign); foreign > 0) {
    figure.reference_value = foreign;
  } else {
    figure.note = "Boost.Context was not there when this was built (libboost-context-dev)";
  }
  bench.add(figure);
  figure.target.reset();
  figure.params = "1000 threads";
  figure.value = median(times.many);
  bench.add(figure);
  figure.params = "our bare switch";
  figure.value = median(times.own);
  bench.add(figure);
  bench.add_aim(figure, 2.5);
}

void run_create(const Row& row, Bench& bench) {
  CreateTimes times{.rounds = bench.rounds(31)};
  if (run_on_team(row, bench, CreateTimes::run, &times)) {
    bench.add({.id = row.id,
               .params = "create and join",
               .unit = "ns",
               .value = median(times.ours),
               .reference = "pthread_create, pthread_join",
               .reference_value = median(times.kernel),
               .target = row.target});
  }
}

}  // namespace sterna::bench
