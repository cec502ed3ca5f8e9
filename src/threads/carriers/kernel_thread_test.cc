// Kernel threads of the runtime: their signals, and those of who makes them.
#include "threads/carriers/kernel_thread.h"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdint>

#include <sched.h>

#include <gtest/gtest.h>

namespace sterna::threads {
namespace {

void* mask_main(void* mask) {
  pthread_sigmask(SIG_BLOCK, nullptr, static_cast<sigset_t*>(mask));
  return nullptr;
}

sigset_t mask_of(Signals signals) {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_t made{};
  EXPECT_EQ(start_kernel_thread(made, {.stack_bytes = std::size_t{1} << 18,
                                       .main = mask_main,
                                       .argument = &mask,
                                       .signals = signals}),
            0);
  pthread_join(made, nullptr);
  return mask;
}

class KernelThreads : public testing::Test {
 protected:
  void SetUp() override {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGFPE);
    pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  void TearDown() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

TEST_F(KernelThreads, HaveTheMaskOfTheirMaker) {
  const sigset_t mask = mask_of(Signals::of_maker);
  EXPECT_EQ(sigismember(&mask, SIGUSR2), 1);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0);
  EXPECT_EQ(sigismember(&mask, SIGFPE), 1);
}

TEST_F(KernelThreads, OrHearOnlyTheirOwnFaults) {
  const sigset_t mask = mask_of(Signals::faults);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(sigismember(&mask, SIGFPE), 0);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
  // Whoever makes one keeps its own.
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGUSR1), 0);
  EXPECT_EQ(sigismember(&mine, SIGUSR2), 1);
}

void* processors_main(void* processors) {
  auto& its = *static_cast<ProcessorMask*>(processors);
  its = {};
  cpu_set_t* const set = reinterpret_cast<cpu_set_t*>(its.data());
  EXPECT_EQ(::sched_getaffinity(0, sizeof its, set), 0);
  return nullptr;
}

ProcessorMask processors_of(const std::optional<ProcessorMask>& wanted) {
  ProcessorMask found;
  pthread_t made{};
  EXPECT_EQ(start_kernel_thread(made, {.stack_bytes = std::size_t{1} << 18,
                                       .main = processors_main,
                                       .argument = &found,
                                       .processors = wanted}),
            0);
  pthread_join(made, nullptr);
  return found;
}

TEST_F(KernelThreads, AreBoundFromTheirFirstInstructionOn) {
  ProcessorMask mine;
  processors_main(&mine);
  const auto last = std::find_if(mine.rbegin(), mine.rend(), [](auto word) { return word != 0; });
  ProcessorMask wanted{};
  wanted[static_cast<std::size_t>(mine.rend() - last) - 1] = std::bit_floor(*last);
  EXPECT_EQ(processors_of(wanted), wanted);
}

TEST_F(KernelThreads, HaveTheProcessorsOfTheirMakerWhereTheirsAreForbidden) {
  ProcessorMask mine;
  processors_main(&mine);
  EXPECT_EQ(processors_of(std::nullopt), mine);
  ProcessorMask beyond{};
  beyond.back() = std::uint64_t{1} << 63;
  EXPECT_EQ(processors_of(beyond), mine);
}

}  // namespace
}  // namespace sterna::threads
