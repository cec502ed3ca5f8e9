// The simulator, and with it the paper's figures as ratios: real policies, virtual workers.
#include "sched/simulator.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace sterna::sched {
namespace {

SimulationResult run(const char* topology, const char* policy, const Workload& workload,
                     std::uint64_t seed = 1) {
  auto result = simulate({.topology = topology, .policy = policy, .seed = seed}, workload);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text);
  return result ? result.value() : SimulationResult{};
}

TEST(Simulator, EqualSeedsGiveEqualRuns) {
  const Workload workload = lu_tasks(3, 2);
  const SimulationResult first = run("node:2 core:2 pu:1", "flat", workload, 7);
  const SimulationResult second = run("node:2 core:2 pu:1", "flat", workload, 7);
  EXPECT_EQ(first.makespan_ns, second.makespan_ns);
  EXPECT_EQ(first.thread_ns, second.thread_ns);
  EXPECT_NE(first.makespan_ns, run("node:2 core:2 pu:1", "flat", workload, 8).makespan_ns);
}

TEST(Simulator, IndependentThreadsUseAllProcessors) {
  for (const char* const policy : {"flat", "spread", "burst", "steal", "cache", "memory"}) {
    const SimulationResult result =
        run("node:2 core:4 pu:1", policy, gangs({8, 8, 8}, 100'000'000));
    EXPECT_GT(result.speedup, 7.5) << policy;
    EXPECT_GT(result.balance, 0.9) << policy;
  }
}

TEST(Simulator, BubblesThatStayOnTheirMachineDoNotCrossTheNetwork) {
  constexpr const char* kNetwork = "network:4 node:2 core:2 pu:1";
  Workload workload = lu_tasks(16, 2);
  workload.network_ns = 1'000'000;
  const SimulationResult flat = run(kNetwork, "flat", workload);
  const SimulationResult parts = run(kNetwork, "parts(machine,gang(numa))", workload);
  EXPECT_EQ(parts.network_moves, 0U);
  EXPECT_GT(flat.network_moves, 100U);
  EXPECT_LT(parts.makespan_ns, flat.makespan_ns);
  EXPECT_GT(parts.balance, 0.9);
  // One machine is no network.
  EXPECT_EQ(run("node:2 core:2 pu:1", "flat", workload).network_moves, 0U);
}

// Paper 003 fig. 7: sequential 1, opportunistic 10.58, fixed by hand 15.82, bubbles and
// burst 15.80.
TEST(Simulator, ConductionWithBubblesIsAsFastAsFixedByHand) {
  constexpr const char* kMachine = "node:4 core:4 pu:1";
  const double flat = run(kMachine, "flat", conduction(16, 0, false)).speedup;
  const double fixed = run(kMachine, "flat", conduction(16, 0, true)).speedup;
  const SimulationResult burst = run(kMachine, "burst", conduction(16, 4, false));
  EXPECT_NEAR(fixed, 15.82, 0.1);
  EXPECT_NEAR(flat, 10.58, 0.3);
  EXPECT_GE(burst.speedup / fixed, 0.998);
  EXPECT_GE(burst.speedup / flat, 1.49 * 0.99);
  EXPECT_GT(burst.locality, 0.999);
}

// Paper 003 fig. 6: three gangs share four processors, a third each.
TEST(Simulator, GangsShareTheMachineFairly) {
  Workload workload = gangs({5, 6, 7}, 2'000'000'000);
  auto result =
      simulate({.topology = "pu:4", .policy = "gang(slice=10)", .quantum_ns = 2'000'000, .seed = 1},
               workload);
  ASSERT_TRUE(result);
  // The first gang ends first; until then all had the same.
  EXPECT_GT(result.value().speedup, 3.3);
}

// Paper 003 fig. 6: within a gang, too. Those that are queued first when it has its slice have most
// of that slice.
TEST(Simulator, ThreadsOfAGangShareItsSlicesFairly) {
  constexpr std::uint64_t kSliceNs = 10'000'000;
  auto result = simulate({.topology = "pu:4",
                          .policy = "gang(slice=10)",
                          .quantum_ns = kSliceNs / 5,
                          .seed = 1,
                          .end_ns = 1200 * kSliceNs},
                         gangs({5, 6, 7}, 4'000'000'000));
  ASSERT_TRUE(result);
  const std::vector<std::uint64_t>& ran = result.value().thread_ns;
  ASSERT_EQ(ran.size(), 18U);
  for (const auto& [first, count] : {std::pair{0, 5}, std::pair{5, 6}, std::pair{11, 7}}) {
    const auto begin = ran.begin() + first;
    const auto [least, most] = std::minmax_element(begin, begin + count);
    const double mean = std::accumulate(begin, begin + count, 0.0) / count;
    EXPECT_LT(static_cast<double>(*most) / mean, 1.03) << count << " threads";
    EXPECT_GT(static_cast<double>(*least) / mean, 0.97) << count << " threads";
  }
}

// Paper 003 fig. 8: gangs keep their speed whatever the number of tasks, generic schedulers do not.
TEST(Simulator, GangsOfLuTasksKeepTheirSpeed) {
  constexpr const char* kMachine = "node:2 core:2 pu:1";
  double least = 1e9;
  double most = 0;
  for (const std::uint32_t tasks : {1, 2, 4, 8}) {
    const double gang = run(kMachine, "gang(slice=10)", lu_tasks(tasks, 4)).speedup;
    least = std::min(least, gang);
    most = std::max(most, gang);
  }
  EXPECT_GE(least, 3.5);
  EXPECT_LT(most / least, 1.05);
  EXPECT_LT(run(kMachine, "flat", lu_tasks(8, 4)).speedup, 0.8 * least);
  // With two threads each one gang leaves half of the machine idle, one a node does not.
  EXPECT_LT(run(kMachine, "gang(slice=10)", lu_tasks(8, 2)).speedup, 2.0);
  EXPECT_GE(run(kMachine, "gang(numa,slice=10)", lu_tasks(8, 2)).speedup, 3.4);
}

TEST(Simulator, LargestMachine) {
  const SimulationResult result = run("node:16 core:32 pu:2", "burst", conduction(1024, 64, false));
  EXPECT_GT(result.speedup, 1000);
  EXPECT_GT(result.locality, 0.99);
}

// Four bubbles a node, regenerated together: each returns to its node, where the others are, too.
TEST(Simulator, BubblesThatShareANodeReturnThereAfterRegeneration) {
  for (const char* const policy : {"burst", "parts(machine,burst)"}) {
    const SimulationResult result = run("node:2 core:16 pu:1", policy, conduction(32, 4, false));
    EXPECT_GT(result.speedup, 31);
    EXPECT_GT(result.locality, 0.99);
  }
}

TEST(Simulator, ErrorsAreSentences) {
  const Workload fixed = conduction(4, 0, true);
  const auto error = [&](const char* topology, const char* policy) {
    const auto result = simulate({.topology = topology, .policy = policy}, fixed);
    return result ? std::string{} : result.error().text;
  };
  EXPECT_NE(error("pu:2", "flat").find("fixed on processor 2 of a machine with 2"),
            std::string::npos);
  EXPECT_NE(error("pu:4", "no such").find("there is no policy"), std::string::npos);
  EXPECT_FALSE(error("nonsense", "flat").empty());
}

TEST(Simulator, WhatIsGivenUpSaysHowFarItCame) {
  std::vector<SimulationProgress> told;
  const auto given_up = simulate(
      {.topology = "pu:4",
       .policy = "flat",
       .events_max = 40'000,
       .on_progress = [&](const SimulationProgress& progress) { told.push_back(progress); }},
      lu_tasks(100, 100));
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, Errc::refused);
  for (const char* const part :
       {"given up after 40000 events", "of 10000 threads", "policy flat"}) {
    EXPECT_NE(given_up.error().text.find(part), std::string::npos) << given_up.error().text;
  }
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told.front().events, 0U);
  EXPECT_LT(told[1].virtual_ns, told[2].virtual_ns);
  EXPECT_EQ(told[2].threads, 10'000U);
}

TEST(SimulatedLoop, EverySchemeDoesAllOfItAndSharesItAsItsFormulaSays) {
  std::vector<double> makespans;
  for (std::uint32_t i = 0; i < kLoopSchemeCount; ++i) {
    const auto scheme = static_cast<LoopScheme>(i);
    SCOPED_TRACE(to_string(scheme));
    Workload loop = parallel_loop(scheme, 8);
    loop.rounds = 2;
    auto result = simulate({.topology = "node:2 pu:4", .policy = "spread"}, loop);
    ASSERT_TRUE(result.has_value()) << result.error().text;
    const double work = 2.0 * 3200 * 10'000;  // Ten microseconds are the mean.
    EXPECT_NEAR(static_cast<double>(result.value().work_ns), work, work * 0.001);
    EXPECT_GE(static_cast<double>(result.value().makespan_ns), work / 8);
    makespans.push_back(static_cast<double>(result.value().makespan_ns) / (work / 8));
  }
  const auto of = [&](LoopScheme scheme) { return makespans[static_cast<std::size_t>(scheme)]; };
  // The first of eight equal parts of a triangle has 15/8 of the mean.
  EXPECT_NEAR(of(LoopScheme::block), 1.875, 0.02);
  EXPECT_LT(of(LoopScheme::cyclic), 1.03) << "balanced, but for the price of chunks";
  EXPECT_LT(of(LoopScheme::dynamic), 1.03);
  // The first chunk of guided is that same part of it, of trapezoid and factoring half of that.
  EXPECT_NEAR(of(LoopScheme::guided), 1.875, 0.02);
  EXPECT_LT(of(LoopScheme::trapezoid), 1.1);
  EXPECT_LT(of(LoopScheme::factoring), 1.1);
  EXPECT_LT(of(LoopScheme::affinity), 1.1);
  // Groups of three: only that of the cheap end cannot help the others.
  EXPECT_GT(of(LoopScheme::clustered), of(LoopScheme::hierarchical) + 0.2);
  EXPECT_LT(of(LoopScheme::hierarchical), 1.15);
}

// Two groups share barriers, and one has no barrier among its steps.
TEST(WorkloadFile, ThoseThatHaveEndedAreNotWaitedForAtABarrier) {
  for (const char* const step : {"barrier", "spin"}) {
    auto parsed = parse_workload("rounds 3\nbubble barrier 0\nthreads 2\ncompute_us 10\n" +
                                     std::string{step} +
                                     "\nbubble barrier 0\nthreads 2\ncompute_us 20\n",
                                 "mixed");
    ASSERT_TRUE(parsed) << parsed.error().text;
    for (const char* const policy : {"flat", "burst", "spread"}) {
      const SimulationResult result = run("pu:4", policy, parsed.value());
      // 60 us until the second ones have ended, then two rounds of 10.
      EXPECT_NEAR(static_cast<double>(result.makespan_ns), 80e3, 5e3) << step << ' ' << policy;
    }
  }
}

TEST(WorkloadFile, SaysWhatAndInWhichLine) {
  auto parsed = parse_workload(
      "rounds 3\nmemory_part 0.5\nremote_factor 2 # as measured\ncold_us 10\n"
      "bubble\nthreads 2 load 3\ncompute_us 100\nbarrier\ngroup barrier 0\nthreads 1 processor "
      "1\ncompute_us 5.5\nbarrier\n",
      "test");
  ASSERT_TRUE(parsed) << parsed.error().text;
  const Workload& workload = parsed.value();
  EXPECT_EQ(workload.rounds, 3U);
  ASSERT_EQ(workload.threads.size(), 3U);
  EXPECT_EQ(workload.threads[1].load, 3U);
  EXPECT_EQ(workload.threads[2].steps[0].ns, 5500U);
  EXPECT_EQ(workload.groups[1].barrier, 0U);
  EXPECT_GT(run("pu:2", "spread", workload).speedup, 0.5);
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bubble\nthreads x", "line 2"},
           {"threads 2", "line 1"},
           {"bubble\nbarrier", "line 2"},
           {"bubble\nthreads 2", "has no steps"},
           {"bubble\nthreads 99999999", "line 2"},
           {"jitter 7", "line 1"},
           {"rounds 0", "line 1"},
           {"rounds 3 4", "\"rounds 3 4\" is not understood"},
           {"bubble\nthreads 2\ncompute_us 1 2", "line 3"},
           {"", "there is no thread"}}) {
    const auto wrong = parse_workload(text, "bad");
    ASSERT_FALSE(wrong) << text;
    EXPECT_NE(wrong.error().text.find(expected), std::string::npos) << wrong.error().text;
  }
}

}  // namespace
}  // namespace sterna::sched
