// C++ exceptions across switches; stack overflows and other faults, in a child process.
#include <stdexcept>
#include <string>
#include <vector>

#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class ExceptionTest : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, ExceptionTest, testing::Values(1, 4));

TEST_P(ExceptionTest, ExceptionsOfManyThreadsLiveAcrossYields) {
  const TestTeam team{GetParam()};
  std::atomic<int> wrong{0};
  struct Thrower {
    int id;
    std::atomic<int>* wrong;
    void operator()() const {
      for (int round = 0; round < 50; ++round) {
        try {
          try {
            throw std::runtime_error(std::to_string(id));
          } catch (const std::runtime_error& inner) {
            yield();
            if (!has_live_exception() || inner.what() != std::to_string(id)) {
              wrong->fetch_add(1);
            }
            try {
              throw id;
            } catch (int number) {
              yield();
              wrong->fetch_add(number == id ? 0 : 1);
            }
            yield();
            throw;
          }
        } catch (const std::exception& outer) {
          yield();
          wrong->fetch_add(outer.what() == std::to_string(id) ? 0 : 1);
        }
        wrong->fetch_add(has_live_exception() || std::uncaught_exceptions() != 0 ? 1 : 0);
      }
    }
  };
  std::vector<Thrower> throwers;
  for (int i = 0; i < 20; ++i) {
    throwers.push_back({i, &wrong});
  }
  std::vector<Thread*> threads;
  for (auto& thrower : throwers) {
    threads.push_back(team.go(thrower));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong.load(), 0);
}

class FaultDeathTest : public testing::Test {
 protected:
  FaultDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  template <typename Function>
  static void run_on_thread(Function function) {
    install_crash_handler([](const CrashInfo& crash) {
      char buffer[kNameBytes];
      std::fprintf(stderr, "callback: signal %d in '%s'\n", crash.signal,
                   crash.thread != nullptr
                       ? std::string{display_name(*crash.thread, buffer)}.c_str()
                       : "a kernel thread");
    });
    const TestTeam team{1};
    join(*team.go(function, {.name = "deep thought"}));
  }
};

// Both opaque to the compiler, which would warn of what we do on purpose.
volatile int depth_max = 1 << 30;
volatile std::uintptr_t nowhere = 8;

[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth == depth_max ? 0 : recurse(depth + 1) + frame[0];
}

TEST_F(FaultDeathTest, StackOverflowNamesTheThread) {
  EXPECT_DEATH(run_on_thread([] { (void)recurse(0); }),
               "stack overflow in thread 'deep thought'.*larger");
}

TEST_F(FaultDeathTest, OtherFaultsReachTheCallback) {
  EXPECT_DEATH(run_on_thread([] { *reinterpret_cast<volatile int*>(nowhere) = 1; }),
               "callback: signal 11 in 'deep thought'");
}

TEST_F(FaultDeathTest, ExceptionThatLeavesAThreadEndsTheProcess) {
  EXPECT_DEATH(run_on_thread([] { throw std::runtime_error("not caught"); }), "not caught");
}

}  // namespace
}  // namespace sterna::threads
