// What fibers of Boost cost, on one kernel thread: prints the medians of several rounds, in ns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <boost/fiber/all.hpp>

namespace fibers = boost::fibers;

namespace {

int rounds = 9;

/// Median over rounds of the time of one of `count` operations.
template <typename Operation>
double median_ns(int count, Operation operation) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    operation();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count() / count);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

/// Stacks that are kept for the next fibers: its fastest.
fibers::pooled_fixedsize_stack& stacks() {
  static fibers::pooled_fixedsize_stack pool{64 * 1024, 1100};
  return pool;
}

template <typename Body>
void run(int fiber_count, Body body) {
  std::vector<fibers::fiber> all;
  for (int i = 0; i < fiber_count; ++i) {
    all.emplace_back(fibers::launch::post, std::allocator_arg, stacks(), body);
  }
  for (fibers::fiber& one : all) {
    one.join();
  }
}

double yield_ns(int fiber_count) {
  const int each = 40'000 / fiber_count;
  return median_ns(each * fiber_count, [=] {
    run(fiber_count, [=] {
      for (int i = 0; i < each; ++i) {
        boost::this_fiber::yield();
      }
    });
  });
}

double create_ns() {
  constexpr int kCount = 20'000;
  double best = 0;
  for (const fibers::launch launch : {fibers::launch::post, fibers::launch::dispatch}) {
    const double time = median_ns(kCount, [=] {
      for (int i = 0; i < kCount; ++i) {
        fibers::fiber{launch, std::allocator_arg, stacks(), [] {}}.join();
      }
    });
    best = best == 0 ? time : std::min(best, time);
  }
  return best;
}

double barrier_ns(int fiber_count) {
  const int each = 100'000 / fiber_count;
  fibers::barrier barrier(static_cast<std::size_t>(fiber_count));
  return median_ns(each * fiber_count, [&] {
    run(fiber_count, [&] {
      for (int i = 0; i < each; ++i) {
        barrier.wait();
      }
    });
  });
}

double mutex_ns() {
  constexpr int kCount = 50'000;
  fibers::mutex mutex;
  return median_ns(kCount, [&] {
    for (int i = 0; i < kCount; ++i) {
      mutex.lock();
      mutex.unlock();
    }
  });
}

/// It has none: a count, a mutex and a condition.
class Semaphore {
 public:
  void acquire() {
    std::unique_lock<fibers::mutex> lock{mutex_};
    changed_.wait(lock, [this] { return count_ > 0; });
    --count_;
  }
  void release() {
    {
      const std::lock_guard<fibers::mutex> lock{mutex_};
      ++count_;
    }
    changed_.notify_one();
  }

 private:
  fibers::mutex mutex_;
  fibers::condition_variable changed_;
  int count_ = 0;
};

double semaphore_ns() {
  constexpr int kCount = 20'000;
  Semaphore ping;
  Semaphore pong;
  return median_ns(2 * kCount, [&] {
    fibers::fiber other{[&] {
      for (int i = 0; i < kCount; ++i) {
        ping.acquire();
        pong.release();
      }
    }};
    for (int i = 0; i < kCount; ++i) {
      ping.release();
      pong.acquire();
    }
    other.join();
  });
}

struct Turns {
  fibers::mutex mutex;
  fibers::condition_variable changed;
  int turn = 0;

  void take(int mine, int count) {
    std::unique_lock<fibers::mutex> lock{mutex};
    for (int i = 0; i < count; ++i) {
      changed.wait(lock, [&] { return turn == mine; });
      turn = 1 - mine;
      changed.notify_one();
    }
  }
};

double condition_ns() {
  constexpr int kCount = 20'000;
  return median_ns(2 * kCount, [] {
    Turns turns;
    fibers::fiber other{[&] { turns.take(1, kCount); }};
    turns.take(0, kCount);
    other.join();
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = std::atoi(argv[1]);
  }
  std::printf("yield2 %.3f\n", yield_ns(2));
  std::printf("yield1000 %.3f\n", yield_ns(1000));
  std::printf("create %.3f\n", create_ns());
  std::printf("barrier64 %.3f\n", barrier_ns(64));
  std::printf("barrier1024 %.3f\n", barrier_ns(1024));
  std::printf("mutex %.3f\n", mutex_ns());
  std::printf("semaphore %.3f\n", semaphore_ns());
  std::printf("condition %.3f\n", condition_ns());
  return 0;
}
