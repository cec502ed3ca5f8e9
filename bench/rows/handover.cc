// thread.handover: waking a thread on another processor, both awake, against what the processor
// itself needs for it: two exchanges of a cache line.
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "base/cpu.h"
#include "bench/contest.h"
#include "bench/process.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/sync/semaphore.h"

namespace sterna::bench {
namespace {

struct Handover {
  static constexpr int kCount = 5'000;
  int rounds;
  std::vector<double> ours = {};
  std::vector<double> parked = {};
  std::vector<double> line = {};
  alignas(128) threads::Semaphore ping{};
  alignas(128) threads::Semaphore pong{};
  alignas(128) std::atomic<std::uint32_t> word{0};

  static void answer(void* argument) {
    auto& its = *static_cast<Handover*>(argument);
    for (int i = 0; i < kCount; ++i) {
      its.ping.acquire();
      its.pong.release();
    }
  }
  /// The same by tokens, for which nobody looks before it leaves its processor.
  static void answer_parked(void* leader) {
    for (int i = 0; i < kCount; ++i) {
      threads::park();
      threads::unpark(*static_cast<threads::Thread*>(leader));
    }
  }
  /// Two workers write one line in turn: one way of it.
  static void bounce(void* argument) {
    auto& its = *static_cast<Handover*>(argument);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      while (its.word.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      its.word.store(2 * i + 2, std::memory_order_release);
    }
  }
  static void lead(void* argument) {
    auto& its = *static_cast<Handover*>(argument);
    for (int round = 0; round < its.rounds; ++round) {
      threads::Thread* other = spawn(answer, argument, {.worker = 1, .bound = true});
      its.ours.push_back(ns_per(2 * kCount, [&] {
        for (int i = 0; i < kCount; ++i) {
          its.ping.release();
          its.pong.acquire();
        }
      }));
      threads::join(*other);
      other = spawn(answer_parked, threads::self(), {.worker = 1, .bound = true});
      its.parked.push_back(ns_per(2 * kCount, [&] {
        for (int i = 0; i < kCount; ++i) {
          threads::unpark(*other);
          threads::park();
        }
      }));
      threads::join(*other);
      its.word = 0;
      other = spawn(bounce, argument, {.worker = 1, .bound = true});
      its.line.push_back(ns_per(2 * kCount, [&] {
        for (std::uint32_t i = 0; i < kCount; ++i) {
          its.word.store(2 * i + 1, std::memory_order_release);
          while (its.word.load(std::memory_order_acquire) != 2 * i + 2) {
          }
        }
      }));
      threads::join(*other);
    }
  }
  static void run(void* argument) {
    threads::join(*spawn(lead, argument, {.worker = 0, .bound = true}));
  }
};

/// The same by the C API, in a program that is linked to libsterna.
void add_api(const Row& row, Bench& bench, double two_lines_ns) {
  Figure figure{.id = row.id,
                .unit = "ns",
                .reference = "two exchanges of a cache line",
                .reference_value = two_lines_ns,
                .target = row.target};
  Result<std::string> program = build_program(bench, Maker::sterna, "threads");
  Result<Readings> readings =
      program ? run_command({.words = {program.value(), "across", fmt::to_string(bench.rounds(9))},
                             .is_preferred = true},
                            bench.work_folder())
              : program.error();
  const auto add = [&](const char* name) {
    if (readings && readings.value().contains(name)) {
      figure.value = readings.value().at(name);
    } else {
      figure.value.reset();
      figure.note = readings ? "our program failed" : readings.error().text;
    }
    bench.add(figure);
    bench.add_aim(figure, 250);
  };
  figure.params = "semaphore, one way, C API";
  add("semaphore");
  // Each way hands over a mutex, too: a line more than the reference has.
  figure.params = "condition, one way, C API";
  figure.target.reset();
  add("condition");
}

}  // namespace

void run_handover(const Row& row, Bench& bench) {
  if (std::thread::hardware_concurrency() < 2) {
    bench.add({.id = row.id, .note = "needs two processors"});
    return;
  }
  Handover handover{.rounds = bench.rounds(21)};
  if (run_on_team(row, bench, Handover::run, &handover, {.worker_count = 2})) {
    Figure figure{.id = row.id,
                  .params = "semaphore, one way",
                  .unit = "ns",
                  .value = median(handover.ours),
                  .reference = "two exchanges of a cache line",
                  .reference_value = 2 * median(handover.line),
                  .target = row.target};
    bench.add(figure);
    figure.params = "park and unpark, one way";
    figure.value = median(handover.parked);
    figure.target.reset();
    bench.add(figure);
    add_api(row, bench, 2 * median(handover.line));
  }
}

}  // namespace sterna::bench
