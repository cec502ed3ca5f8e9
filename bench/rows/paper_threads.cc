// thread.reuse and paper.000.t4: table T4 of paper 000 (Marcel, 1996): creating threads, many and
// not run, on stacks of threads that have ended, against fresh ones. There 60 us against 900;
// threads of Solaris 500 with memory given to them, 800 without. Stacks of 15 KiB, as there; kernel
// threads have the least stack that the system allows.
#include <climits>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/control/control.h"
#include "threads/sync/barrier.h"

namespace sterna::bench {
namespace {

constexpr int kThreads = 1000;  // As many as a worker keeps stacks for.
constexpr int kKernelThreads = 100;

/// Time of one creation. The threads are held, so that they do not run before all are there.
double create_ns(std::size_t stack_bytes) {
  std::vector<threads::Thread*> all(kThreads);
  const double time = ns_per(kThreads, [&] {
    for (threads::Thread*& thread : all) {
      thread = spawn([](void*) {}, nullptr, {.stack_bytes = stack_bytes, .held = true});
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

/// On stacks that are there, or with the library's own. Those that have run wait until all are
/// there: the creation of one is not disturbed by the end of another.
double create_kernel_ns(std::byte* stacks, std::size_t stack_bytes) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&gate);
  pthread_t all[kKernelThreads];
  const double time = ns_per(kKernelThreads, [&] {
    for (pthread_t& thread : all) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      if (stacks != nullptr) {
        pthread_attr_setstack(&attributes, stacks + (&thread - all) * stack_bytes, stack_bytes);
      } else {
        pthread_attr_setstacksize(&attributes, stack_bytes);
      }
      const auto wait = [](void* argument) -> void* {
        auto* const its = static_cast<pthread_mutex_t*>(argument);
        pthread_mutex_lock(its);
        pthread_mutex_unlock(its);
        return nullptr;
      };
      check(pthread_create(&thread, &attributes, wait, &gate) == 0,
            "the benchmark's kernel thread starts");
      pthread_attr_destroy(&attributes);
    }
  });
  pthread_mutex_unlock(&gate);
  for (const pthread_t thread : all) {
    pthread_join(thread, nullptr);
  }
  return time;
}

/// Stacks for kernel threads, their pages touched.
class KernelStacks {
 public:
  KernelStacks() : bytes_{static_cast<std::size_t>(PTHREAD_STACK_MIN)} {
    void* const memory = ::mmap(nullptr, bytes_ * kKernelThreads, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    check(memory != MAP_FAILED, "there is memory for the stacks of 100 threads");
    memory_ = static_cast<std::byte*>(memory);
  }
  ~KernelStacks() { ::munmap(memory_, bytes_ * kKernelThreads); }
  KernelStacks(const KernelStacks&) = delete;
  KernelStacks& operator=(const KernelStacks&) = delete;
  [[nodiscard]] std::byte* memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

double barrier_ns() {
  constexpr int kCount = 64;
  constexpr int kTimes = 1000;
  threads::Barrier barrier{kCount};
  return ns_per(kCount * kTimes, [&] {
    in_threads(kCount, [&](int) {
      for (int i = 0; i < kTimes; ++i) {
        (void)barrier.arrive_and_wait();
      }
    });
  });
}

struct CreationTimes {
  Pairs reused_fresh = {}, reused_given = {}, fresh_own = {}, fresh_barrier = {};
};

/// In a team that has had no threads of this size but this one.
void measure(std::size_t stack_bytes, CreationTimes& times) {
  const KernelStacks stacks;
  const double fresh = create_ns(stack_bytes);
  const double reused = create_ns(stack_bytes);
  (void)create_kernel_ns(stacks.memory(), stacks.bytes());  // The first time costs more.
  times.reused_fresh.add(reused, fresh);
  times.reused_given.add(reused, create_kernel_ns(stacks.memory(), stacks.bytes()));
  times.fresh_own.add(fresh, create_kernel_ns(nullptr, stacks.bytes()));
  times.fresh_barrier.add(fresh, barrier_ns());
}

bool measure_rounds(const Row& row, Bench& bench, std::size_t stack_bytes, CreationTimes& times) {
  for (int round = bench.rounds(15); round > 0; --round) {
    if (!on_team(row, bench, [&] { measure(stack_bytes, times); })) {
      return false;
    }
  }
  return true;
}

Figure figure_of(const Row& row, const char* params, const Pairs& pairs, const char* reference) {
  return {.id = row.id,
          .params = params,
          .unit = "ns",
          .value = pairs.our_median(),
          .reference = reference,
          .reference_value = pairs.reference_median()};
}

}  // namespace

void run_reuse(const Row& row, Bench& bench) {
  CreationTimes times;
  if (measure_rounds(row, bench, threads::kDefaultStackBytes, times)) {
    Figure figure = figure_of(row, "1000 threads", times.reused_fresh, "creation on fresh stacks");
    figure.target = row.target;
    bench.add(figure);
  }
}

void run_paper_000_t4(const Row& row, Bench& bench) {
  CreationTimes times;
  if (!measure_rounds(row, bench, 15 * 1024, times)) {
    return;
  }
  const auto add = [&](const char* params, const Pairs& pairs, const char* reference,
                       std::optional<double> target) {
    Figure figure = figure_of(row, params, pairs, reference);
    figure.target = target;
    bench.add(figure);
  };
  add("on used stacks", times.reused_fresh, "on fresh stacks", row.target);
  add("on used stacks", times.reused_given, "kernel threads, stacks given", 60.0 / 500);
  add("on fresh stacks", times.fresh_own, "kernel threads, their own stacks", 900.0 / 800);
  add("on fresh stacks", times.fresh_barrier, "a barrier of 64, per thread (paper: 40 times)", {});
}

}  // namespace sterna::bench
