// thread.handover: waking a thread on another processor, both awake, against what the processor
// itself needs for it: two exchanges of a cache line. thread.million: a million threads that all
// wait, against the page faults of as many stacks.
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "memory/layout.h"
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

struct Million {
  int count;
  double ours = 0;
  threads::Semaphore gate{};

  static void wait(void* million) { static_cast<Million*>(million)->gate.acquire(); }
  static void run(void* argument) {
    auto& its = *static_cast<Million*>(argument);
    std::vector<threads::Thread*> all(static_cast<std::size_t>(its.count));
    its.ours = ns_per(its.count, [&] {
      for (int i = 0; i < its.count; ++i) {
        all[static_cast<std::size_t>(i)] = spawn(wait, argument);
        if (i % 64 == 63) {
          threads::yield();  // They run, and block.
        }
      }
      threads::yield();
      its.gate.release(static_cast<std::uint32_t>(its.count));
      for (threads::Thread* const thread : all) {
        threads::join(*thread);
      }
    });
  }
};

/// The first touch of one page in each of `count` stacks of 64 KiB.
double fault_ns(int count) {
  const std::size_t bytes = memory::kStackSlotBytesMin * static_cast<std::size_t>(count);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return 0;
  }
  (void)::madvise(memory, bytes, MADV_NOHUGEPAGE);
  auto* const stacks = static_cast<volatile char*>(memory);
  const double time = ns_per(count, [&] {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      stacks[(i + 1) * memory::kStackSlotBytesMin - 64] = 1;
    }
  });
  ::munmap(memory, bytes);
  return time;
}

/// The same with a guard below each: what is there before a thread is. 0: no space for them.
double stack_ns(int count) {
  AllRanges ranges;
  Result<std::unique_ptr<memory::IsoSpace>> space = memory::IsoSpace::open({.leases = &ranges});
  if (!space) {
    return 0;
  }
  bool is_whole = true;
  const double time = ns_per(count, [&] {
    for (int i = 0; i < count && is_whole; ++i) {
      Result<memory::StackSlot> slot = space.value()->acquire_stack(threads::kDefaultStackBytes);
      is_whole = slot.has_value();
      if (is_whole) {
        *static_cast<volatile char*>(slot.value().descriptor()) = 1;
      }
    }
  });
  return is_whole ? time : 0;
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
  }
}

void run_million(const Row& row, Bench& bench) {
  std::vector<double> ours;
  std::vector<double> faults;
  std::vector<double> stacks;
  const int count = bench.options().quick ? 10'000 : 1'000'000;
  for (int round = bench.rounds(3); round > 0; --round) {
    // Each begins with memory that was just in use: a virtual machine may have given back what was
    // free for a while, and getting it again takes several times as long as what is measured.
    (void)fault_ns(count);
    Million million{.count = count};
    if (!run_on_team(row, bench, Million::run, &million)) {
      return;
    }
    ours.push_back(million.ours);
    if (const double time = fault_ns(count); time > 0) {
      faults.push_back(time);
    }
    if (const double time = stack_ns(count); time > 0) {
      stacks.push_back(time);
    }
  }
  Figure figure{.id = row.id,
                .params = fmt::format("{} threads, each", count),
                .unit = "ns",
                .value = median(ours),
                .reference = "page faults of the stacks",
                .target = row.target};
  if (!faults.empty()) {
    figure.reference_value = median(faults);
  }
  bench.add(figure);
  if (!stacks.empty() && !faults.empty()) {
    figure.params = fmt::format("{} stacks and their guards, no threads, each", count);
    figure.value = median(stacks);
    figure.target.reset();
    bench.add(figure);
  }
}

}  // namespace sterna::bench
