// thread.*.fiber: what user threads do on one kernel thread, against Boost.Fiber: inside the
// runtime, and by the C API, in a program that is linked to libsterna as those of users are. That
// program and the peer's are compiled when the row runs.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "bench/contest.h"
#include "bench/process.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/sync/barrier.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/sync/semaphore.h"

namespace sterna::bench {
namespace {

struct Crowd {
  int each;
  threads::Barrier barrier;
};

template <typename Body>
void run_crowd(int thread_count, Body body, void* argument) {
  std::vector<threads::Thread*> all(static_cast<std::size_t>(thread_count));
  for (threads::Thread*& thread : all) {
    thread = spawn(body, argument);
  }
  for (threads::Thread* const thread : all) {
    threads::join(*thread);
  }
}

double yield_ns(int thread_count) {
  int each = 40'000 / thread_count;
  return ns_per(each * thread_count, [&] {
    run_crowd(
        thread_count,
        [](void* count) {
          for (int i = *static_cast<int*>(count); i > 0; --i) {
            threads::yield();
          }
        },
        &each);
  });
}

double create_ns() {
  constexpr int kCount = 20'000;
  return ns_per(kCount, [] {
    for (int i = 0; i < kCount; ++i) {
      threads::join(*spawn([](void*) {}, nullptr));
    }
  });
}

double barrier_ns(int thread_count) {
  Crowd crowd{100'000 / thread_count, threads::Barrier{static_cast<std::uint32_t>(thread_count)}};
  return ns_per(crowd.each * thread_count, [&] {
    run_crowd(
        thread_count,
        [](void* argument) {
          auto& its = *static_cast<Crowd*>(argument);
          for (int i = 0; i < its.each; ++i) {
            its.barrier.arrive_and_wait();
          }
        },
        &crowd);
  });
}

double mutex_ns() {
  constexpr int kCount = 50'000;
  threads::Mutex mutex;
  return ns_per(kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      mutex.lock();
      mutex.unlock();
    }
  });
}

struct Pair {
  static constexpr int kCount = 20'000;
  threads::Semaphore ping;
  threads::Semaphore pong;
};

double semaphore_ns() {
  Pair pair;
  return ns_per(2 * Pair::kCount, [&] {
    threads::Thread* const other = spawn(
        [](void* argument) {
          auto& its = *static_cast<Pair*>(argument);
          for (int i = 0; i < Pair::kCount; ++i) {
            its.ping.acquire();
            its.pong.release();
          }
        },
        &pair);
    for (int i = 0; i < Pair::kCount; ++i) {
      pair.ping.release();
      pair.pong.acquire();
    }
    threads::join(*other);
  });
}

struct Turns {
  static constexpr int kCount = 20'000;
  threads::Mutex mutex;
  threads::Condition changed;
  int turn = 0;  // Guard: mutex.

  /// Waits for its turn, and gives it to the other one, as often as the other one does.
  void take(int mine) noexcept STERNA_LOCKS_UNCHECKED {
    mutex.lock();
    for (int i = 0; i < kCount; ++i) {
      while (turn != mine) {
        changed.wait(mutex);
      }
      turn = 1 - mine;
      changed.signal();
    }
    mutex.unlock();
  }
};

// Not inlined: in a larger frame what the others time would lie at other offsets from the stacks of
// threads, which costs a barrier 2 ns of 11.
[[gnu::noinline]] double condition_ns() {
  Turns turns;
  return ns_per(2 * Turns::kCount, [&] {
    threads::Thread* const other =
        spawn([](void* its) { static_cast<Turns*>(its)->take(1); }, &turns);
    turns.take(0);
    threads::join(*other);
  });
}

/// The calling kernel thread, and what it starts, stays on one processor: those of a shared machine
/// differ, and ours and the peer's are measured on the same one.
class OnProcessor {
 public:
  explicit OnProcessor(int processor) noexcept {
    ::sched_getaffinity(0, sizeof former_, &former_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OnProcessor() { ::sched_setaffinity(0, sizeof former_, &former_); }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;

 private:
  cpu_set_t former_ = {};
};

using Samples = std::map<std::string, std::vector<double>>;

/// One figure of ours, by its name in the peer's output.
double measure(const std::string& name) {
  if (name == "yield2") {
    return yield_ns(2);
  }
  if (name == "yield1000") {
    return yield_ns(1000);
  }
  if (name == "barrier64") {
    return barrier_ns(64);
  }
  if (name == "barrier1024") {
    return barrier_ns(1024);
  }
  if (name == "condition") {
    return condition_ns();
  }
  return name == "create" ? create_ns() : name == "mutex" ? mutex_ns() : semaphore_ns();
}

struct OurTurn {
  std::vector<std::string> names;
  Samples* samples;
  int processor = 0;  // Where it was.
  static void run(void* argument) {
    auto& its = *static_cast<OurTurn*>(argument);
    its.processor = std::max(::sched_getcpu(), 0);
    for (int i = 0; i < 5; ++i) {
      for (const std::string& name : its.names) {
        (*its.samples)[name].push_back(measure(name));
      }
    }
  }
};

Result<std::string> build_fiber(Bench& bench) {
  const std::string executable = bench.work_folder() + "/fiber";
  if (::access(executable.c_str(), X_OK) == 0) {
    return executable;
  }
  Result<Readings> compiled =
      run_command({.words = {"c++", "-O2", "-std=c++17", bench.program_folder() + "/fiber.cc", "-o",
                             executable, "-lboost_fiber", "-lboost_context"}},
                  bench.work_folder());
  if (!compiled) {
    return Error{Errc::unsupported,
                 "Boost.Fiber is not installed (libboost-fiber-dev): " + compiled.error().text};
  }
  return executable;
}

struct Line {
  std::string name;
  std::string params;
  double aim_ns;  // By the C API.
};

/// What one candidate has had, beside the peer in the same rounds.
struct Side {
  Result<std::string> program = Error{Errc::unsupported, "not built"};  // Of the C API, the peer.
  std::map<std::string, Pairs> pairs = {};
  Samples alone = {};  // If the peer is not there.

  void add(const std::string& name, const Readings& ours, const Readings& theirs) {
    if (!ours.contains(name)) {
      return;
    }
    alone[name].push_back(ours.at(name));
    if (theirs.contains(name)) {
      pairs[name].add(ours.at(name), theirs.at(name));
    }
  }
  /// `figure`, with what was measured.
  [[nodiscard]] Figure filled(Figure figure, const std::string& name, const Side& peer) const {
    if (const auto found = pairs.find(name); found != pairs.end()) {
      figure.value = found->second.our_median();
      figure.reference_value = found->second.reference_median();
    } else if (alone.contains(name)) {
      figure.value = median(alone.at(name));
      figure.note = peer.program ? "its program failed" : peer.program.error().text;
    } else {
      figure.note = program ? "our program failed" : program.error().text;
    }
    return figure;
  }
};

Readings run_program(Side& side, const std::vector<std::string>& arguments, Bench& bench) {
  if (!side.program) {
    return {};
  }
  Command command{.words = {side.program.value()}, .is_preferred = true};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  Result<Readings> readings = run_command(command, bench.work_folder());
  return readings ? std::move(readings.value()) : Readings{};
}

void run_rows(const Row& row, Bench& bench, const std::vector<Line>& lines) {
  Side inside;
  Side api{.program = build_program(bench, Maker::sterna, "threads")};
  Side peer{.program = build_fiber(bench)};
  for (int round = bench.rounds(7); round > 0; --round) {
    Samples now;
    OurTurn turn{.names = {}, .samples = &now};
    for (const Line& line : lines) {
      turn.names.push_back(line.name);
    }
    if (!run_on_team(row, bench, OurTurn::run, &turn)) {
      return;
    }
    Readings ours;
    for (const Line& line : lines) {
      ours[line.name] = median(now[line.name]);
    }
    const OnProcessor same{turn.processor};
    const Readings by_api = run_program(api, {"one", "3"}, bench);
    const Readings theirs = run_program(peer, {"3"}, bench);
    for (const Line& line : lines) {
      inside.add(line.name, ours, theirs);
      api.add(line.name, by_api, theirs);
    }
  }
  for (const Line& line : lines) {
    const Figure figure{.id = row.id,
                        .params = line.params,
                        .unit = "ns",
                        .reference = "Boost.Fiber",
                        .target = row.target};
    bench.add(inside.filled(figure, line.name, peer));
    Figure by_api = api.filled(figure, line.name, peer);
    by_api.params += ", C API";
    bench.add(by_api);
    bench.add_aim(by_api, line.aim_ns);
  }
}

}  // namespace

void run_yield_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench, {{"yield2", "2 threads", 12}, {"yield1000", "1000 threads", 15}});
}

void run_create_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench, {{"create", "create and join", 35}});
}

void run_barrier_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench,
           {{"barrier64", "64, per thread", 20}, {"barrier1024", "1024, per thread", 20}});
}

void run_mutex_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench, {{"mutex", "lock and unlock", 12}});
}

void run_semaphore_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench, {{"semaphore", "one way of a ping-pong", 35}});
}

void run_condition_fiber(const Row& row, Bench& bench) {
  run_rows(row, bench, {{"condition", "one way of a ping-pong", 35}});
}

}  // namespace sterna::bench
