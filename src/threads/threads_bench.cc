// What threads cost, each figure beside its reference, measured in the same run: medians of many
// short rounds, on one worker. A plain program: prints one line per figure; bench/ has the tables.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <pthread.h>

#include "memory/iso_space.h"
#include "threads/context/context.h"
#include "threads/scheduler.h"
#include "threads/sync/barrier.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/sync/semaphore.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

constexpr int kRounds = 61;

/// Median over rounds of the time of one of `count` operations, in ns.
template <typename Operation>
double median_ns(int count, Operation&& operation) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t begin = now_ns();
    operation();
    rounds.push_back(static_cast<double>(now_ns() - begin) / count);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

void print(const char* id, double value, const char* reference, double reference_value) {
  std::printf("%-28s %8.2f ns   %s %.2f ns, ratio %.3f\n", id, value, reference, reference_value,
              value / reference_value);
}

constinit SavedContext main_context;
constinit SavedContext other_context;

void bounce() noexcept {
  for (;;) {
    (void)switch_context(other_context, main_context, nullptr);
  }
}

/// One bare switch of contexts.
double bare_switch_ns() {
  constexpr int kCount = 20'000;
  alignas(64) static std::byte stack[32 * 1024];
  make_context(other_context, stack + sizeof stack, bounce);
  return median_ns(2 * kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      (void)switch_context(main_context, other_context, nullptr);
    }
  });
}

double kernel_create_join_ns() {
  constexpr int kCount = 50;
  return median_ns(kCount, [] {
    for (int i = 0; i < kCount; ++i) {
      pthread_t thread = {};
      if (pthread_create(
              &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) != 0) {
        std::abort();
      }
      pthread_join(thread, nullptr);
    }
  });
}

double kernel_mutex_ns() {
  constexpr int kCount = 50'000;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  return median_ns(kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    }
  });
}

Thread* spawn(Team& team, Entry entry, void* argument) {
  Result<Thread*> thread = team.spawn({}, entry, argument);
  check(thread.has_value(), "the benchmark's thread starts");
  return thread.value();
}

struct Yielders {
  int count;
  static void run(void* argument) {
    for (int i = static_cast<Yielders*>(argument)->count; i > 0; --i) {
      yield();
    }
  }
};

double yield_ns(Team& team, int thread_count) {
  Yielders yielders{200'000 / thread_count};
  std::vector<Thread*> threads(static_cast<std::size_t>(thread_count));
  return median_ns(yielders.count * thread_count, [&] {
    for (auto& thread : threads) {
      thread = spawn(team, Yielders::run, &yielders);
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  });
}

double create_join_ns(Team& team) {
  constexpr int kCount = 20'000;
  return median_ns(kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      join(*spawn(
          team, [](void*) {}, nullptr));
    }
  });
}

struct BarrierRound {
  Barrier barrier;
  int rounds;
  static void run(void* argument) {
    auto& its = *static_cast<BarrierRound*>(argument);
    for (int i = 0; i < its.rounds; ++i) {
      its.barrier.arrive_and_wait();
    }
  }
};

double barrier_ns(Team& team, std::uint32_t thread_count) {
  const int rounds = static_cast<int>(100'000 / thread_count);
  BarrierRound round{Barrier{thread_count}, rounds};
  std::vector<Thread*> threads(thread_count);
  return median_ns(rounds * static_cast<int>(thread_count), [&] {
    for (auto& thread : threads) {
      thread = spawn(team, BarrierRound::run, &round);
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  });
}

double mutex_ns() {
  constexpr int kCount = 50'000;
  Mutex mutex;
  return median_ns(kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      mutex.lock();
      mutex.unlock();
    }
  });
}

struct PingPong {
  static constexpr int kCount = 20'000;
  Semaphore ping;
  Semaphore pong;
  static void answer(void* argument) {
    auto& its = *static_cast<PingPong*>(argument);
    for (int i = 0; i < kCount; ++i) {
      its.ping.acquire();
      its.pong.release();
    }
  }
};

double semaphore_ns(Team& team) {
  PingPong pair;
  return median_ns(2 * PingPong::kCount, [&] {
    Thread* const other = spawn(team, PingPong::answer, &pair);
    for (int i = 0; i < PingPong::kCount; ++i) {
      pair.ping.release();
      pair.pong.acquire();
    }
    join(*other);
  });
}

struct Parkers {
  static constexpr int kCount = 20'000;
  Thread* first = nullptr;
  static void answer(void* argument) {
    for (int i = 0; i < kCount; ++i) {
      park();
      unpark(*static_cast<Parkers*>(argument)->first);
    }
  }
};

double park_ns(Team& team) {
  Parkers pair;
  return median_ns(2 * Parkers::kCount, [&] {
    pair.first = self();
    Thread* const other = spawn(team, Parkers::answer, &pair);
    for (int i = 0; i < Parkers::kCount; ++i) {
      unpark(*other);
      park();
    }
    join(*other);
  });
}

void run_all(void* argument) {
  Team& team = *static_cast<Team*>(argument);
  const double bare = bare_switch_ns();
  const double kernel_create = kernel_create_join_ns();
  const double kernel_mutex = kernel_mutex_ns();
  print("thread.switch", bare, "target", 2.5);
  print("thread.yield 2", yield_ns(team, 2), "bare switch", bare);
  print("thread.yield 1000", yield_ns(team, 1000), "bare switch", bare);
  print("thread.create", create_join_ns(team), "kernel thread", kernel_create);
  print("thread.barrier 64", barrier_ns(team, 64), "target", 20);
  print("thread.barrier 1024", barrier_ns(team, 1024), "target", 20);
  print("thread.mutex", mutex_ns(), "kernel mutex", kernel_mutex);
  print("thread.semaphore one way", semaphore_ns(team), "target", 35);
  print("thread.park one way", park_ns(team), "target", 35);
}

}  // namespace
}  // namespace sterna::threads

int main() {
  auto space = sterna::memory::IsoSpace::open({});
  if (!space) {
    std::fprintf(stderr, "%s\n", space.error().text.c_str());
    return 1;
  }
  auto team = sterna::threads::Team::open({.worker_count = 1, .iso_space = space.value().get()});
  if (!team) {
    std::fprintf(stderr, "%s\n", team.error().text.c_str());
    return 1;
  }
  auto thread = team.value()->spawn({.stack_bytes = 256 * 1024}, sterna::threads::run_all,
                                    team.value().get());
  sterna::threads::join(*thread.value());
  return 0;
}
