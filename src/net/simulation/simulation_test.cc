// Thousands of short histories of messages, each from a seed: which node polls next, how long
// packets take, who sends, receives, probes, takes back, or moves, which wires break, all is drawn
// from it, and time is virtual. Whatever happens: every message is received once, whole, and in the
// order of its sender; every request ends; memory stays within its bounds and is given back.
//
// kShards tests of kSeedsEach seeds, from 1 on, or from STERNA_SIM_FIRST on; with
// STERNA_SIM_SECONDS each goes on for so long. A failure names its seed; STERNA_SIM_SEED=<it> runs
// that one alone.
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

constexpr std::uint64_t kShards = 8;
constexpr std::uint64_t kSeedsEach = 256;

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

class Simulation : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Simulation, EveryMessageComesOnceInOrderWhateverMovesOrDies) {
  (void)std::signal(SIGABRT, name_seed);
  const std::uint64_t only = setting("STERNA_SIM_SEED", 0);
  if (only != 0 && GetParam() != 0) {
    GTEST_SKIP() << "one seed is asked for";
  }
  const std::uint64_t end_ns = now_ns() + setting("STERNA_SIM_SECONDS", 0) * 1'000'000'000;
  // Shards take turns, so that each goes on behind what all have done.
  std::uint64_t seed = only != 0 ? only : setting("STERNA_SIM_FIRST", 1) + GetParam();
  std::uint64_t count = 0;
  simulation::Tally tally;
  do {
    SCOPED_TRACE("STERNA_SIM_SEED=" + std::to_string(seed));
    seed_now = static_cast<std::sig_atomic_t>(seed);
    simulation::History{seed, tally}.run();
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    ++count;
    seed += kShards;
  } while (only == 0 && (count < kSeedsEach || now_ns() < end_ns));
  (void)std::signal(SIGABRT, SIG_DFL);
  std::printf("%s\n", tally.text(count).c_str());
  if (only == 0) {
    EXPECT_GE(count, kSeedsEach);
  }
  if (only == 0 && setting("STERNA_SIM_FIRST", 1) == 1) {  // Of others it is chance what happens.
    tally.expect_all();
  }
}
INSTANTIATE_TEST_SUITE_P(Shards, Simulation, testing::Range<std::uint64_t>(0, kShards));

}  // namespace
}  // namespace sterna::net
