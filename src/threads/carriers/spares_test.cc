// Kernel threads that a team makes on the way have its processors, whatever their maker is bound
// to.
#include <gtest/gtest.h>
#include <sched.h>

#include "threads/carriers/blocking.h"
#include "threads/carriers/carrier.h"
#include "threads/control/control.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

cpu_set_t processors_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

/// The kernel thread of the caller keeps its first processor only.
void bind_to_one() {
  const cpu_set_t all = processors_here();
  cpu_set_t one;
  CPU_ZERO(&one);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &all)) {
    ++cpu;
  }
  CPU_SET(cpu, &one);
  EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

class SparesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&all) < 2) {
      // What is looked at is that a binding to one of several processors is not inherited.
      GTEST_SKIP() << "this process may use one processor only";
    }
  }
  const cpu_set_t all = processors_here();
};

TEST_F(SparesTest, CarrierOfABoundMakerHasTheProcessorsOfTheTeam) {
  const TestTeam team{1};
  team.run([&] {
    bind_to_one();
    const bool has_left = enter_blocking();  // Makes one: there is none to spare.
    EXPECT_TRUE(has_left);
    leave_blocking();
  });
  std::size_t count = 0;
  {
    const SpinGuard guard{team->state()->carriers_lock};
    for (const auto& carrier : team->state()->carriers) {
      cpu_set_t set;
      CPU_ZERO(&set);
      const int id = carrier->kernel_id.load();
      count += id != 0 && ::sched_getaffinity(id, sizeof set, &set) == 0 && CPU_EQUAL(&set, &all);
    }
    EXPECT_GE(team->state()->carriers.size(), 2U);
  }
  EXPECT_GE(count, 1U) << "the one that was made";
}

TEST_F(SparesTest, BlockingCallsRunOnTheProcessorsOfTheTeam) {
  const TestTeam team{1};
  bool is_equal = false;
  team.run([&] {
    bind_to_one();
    (void)blocking([&]() noexcept -> long {
      const cpu_set_t there = processors_here();
      is_equal = CPU_EQUAL(&there, &all) != 0;
      return 0;
    });
  });
  EXPECT_TRUE(is_equal);
}

}  // namespace
}  // namespace sterna::threads
