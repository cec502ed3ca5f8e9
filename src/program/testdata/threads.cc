// Kernel threads inside a rank: their own thread-local variables, exceptions, the rank's heap.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test_calls.h"

thread_local int local = 17;
thread_local std::string local_text = "initial";
static std::mutex lock;
static std::vector<std::string> results;
static std::atomic<int> destroyed{0};
struct Counts {
  ~Counts() { ++destroyed; }
};

int main() {
  const int me = sterna_test_rank();
  local = me;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([i, me] {
      thread_local Counts counts;
      (void)&counts;
      std::string mine = "t" + std::to_string(i);
      bool caught = false;
      try {
        throw std::runtime_error(mine);
      } catch (const std::runtime_error& error) {
        caught = mine == error.what();
      }
      for (int round = 0; round < 1000; round++) {
        std::vector<int> churn(static_cast<std::size_t>(round % 100 + 1), i);
        local += churn.back();
      }
      const std::lock_guard guard(lock);
      results.push_back(caught && local == 17 + 1000 * i && local_text == "initial" &&
                                sterna_test_rank() == me && sterna_test_memory() == 1
                            ? "good"
                            : "bad");
    });
  }
  const bool is_own_memory = sterna_test_memory() == 1;
  if (sterna_test_rank() == 0) {
    sterna_test_pause();
  }
  for (auto& thread : threads) {
    thread.join();
  }
  int good = is_own_memory && sterna_test_memory() == 1 ? 0 : -100;
  for (const auto& result : results) {
    good += result == "good";
  }
  std::printf("rank %d: %d good, %d destroyed, own %d\n", me, good, destroyed.load(), local);
  sterna_test_pause();
  return 0;
}
