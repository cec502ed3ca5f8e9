// Thousands of short histories of messages, each from a seed: which node polls next, how long
// packets take, who sends, receives, probes, takes back, or moves, all is drawn from it, and
// time is virtual. Whatever happens: every message is received once, whole, and in the order of its
// sender; every request ends; memory stays within its bounds and is given back.
//
// In 4 seconds as many seeds as fit (STERNA_SIM_SECONDS), from 1 on, or from STERNA_SIM_FIRST on. A
// failure names its seed; STERNA_SIM_SEED=<it> runs that one alone.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/simulation/simulation_history.h"

namespace sterna::net {
namespace {

using simulation::setting;

volatile std::sig_atomic_t seed_now = 0;

/// A broken rule of our own ends the process: it must not take the seed along.
void name_seed(int) {
  char text[64];
  const int bytes =
      std::snprintf(text, sizeof text, "\nSTERNA_SIM_SEED=%ld\n", static_cast<long>(seed_now));
  [[maybe_unused]] const ssize_t written = ::write(2, text, static_cast<std::size_t>(bytes));
  (void)std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

TEST(Simulation, EveryMessageComesOnceInOrderWhateverMovesOrDies) {
  (void)std::signal(SIGABRT, name_seed);
  const std::uint64_t only = setting("STERNA_SIM_SEED", 0);
  const std::uint64_t first = only != 0 ? only : setting("STERNA_SIM_FIRST", 1);
  const std::uint64_t end_ns = now_ns() + setting("STERNA_SIM_SECONDS", 4) * 1'000'000'000;
  std::uint64_t seed = first;
  // At least some hundreds, however slow the machine is.
  do {
    SCOPED_TRACE("STERNA_SIM_SEED=" + std::to_string(seed));
    seed_now = static_cast<std::sig_atomic_t>(seed);
    simulation::History{seed}.run();
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    ++seed;
  } while (only == 0 && (seed - first < 300 || now_ns() < end_ns));
  std::printf("%llu seeds, from %llu on\n", static_cast<unsigned long long>(seed - first),
              static_cast<unsigned long long>(first));
  (void)std::signal(SIGABRT, SIG_DFL);
}

}  // namespace
}  // namespace sterna::net
