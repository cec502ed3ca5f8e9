// The ticker: threads that compute until a tick has done its work, on all workers of teams of 1 to
// 4; rest and the way back. Nothing is timed: what does not tick never ends.
#include "threads/preemption/ticker.h"

#include <thread>
#include <vector>

#include "base/random.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kTickNs = 200'000;

/// A network whose only event is the tick.
class TickedHook final : public IdleHook {
 public:
  std::uint32_t poll(SchedulingPoint point) noexcept override {
    if (point == SchedulingPoint::tick) {
      EXPECT_EQ(self(), nullptr);
      EXPECT_EQ(this_worker(), nullptr);
      ticks.fetch_add(1);
      if (wakes != nullptr) {
        unpark(*wakes.exchange(nullptr));
      }
    }
    return 0;
  }
  bool sleep(std::uint64_t, const std::atomic<std::uint32_t>&, std::uint32_t) noexcept override {
    return false;
  }
  void wake() noexcept override {}

  std::atomic<std::uint32_t> ticks{0};
  std::atomic<Thread*> wakes{nullptr};
};

class TickerOfTeam : public testing::TestWithParam<std::uint32_t> {
 protected:
  TickedHook hook;
  TestTeam team{GetParam(), {.tick_ns = kTickNs, .idle_hook = &hook}};

  /// All workers compute, without a call, until so many ticks more have come.
  void compute_until_ticked(std::uint32_t more) {
    const std::uint32_t goal = hook.ticks.load() + more;
    std::atomic<std::uint32_t> computing{0};
    auto compute = [&] {
      computing.fetch_add(1);
      while (computing.load() < GetParam() || hook.ticks.load() < goal) {
      }
    };
    std::vector<Thread*> threads;
    for (std::uint32_t i = 0; i < GetParam(); ++i) {
      threads.push_back(team.go(compute, {.worker = i}));
    }
    for (Thread* thread : threads) {
      join(*thread);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, TickerOfTeam, testing::Values(1, 2, 4));

TEST_P(TickerOfTeam, HookIsPolledWhileAllWorkersCompute) {
  compute_until_ticked(3);
}

TEST_P(TickerOfTeam, RestsWhileAWorkerHasNothingToDoAndTicksAgain) {
  for (int round = 0; round < 3; ++round) {
    while (!team->state()->tickers[1]->is_resting()) {
      sleep_for(kTickNs);
    }
    compute_until_ticked(1);
  }
}

TEST_P(TickerOfTeam, ThreadThatATickWakesRunsWhenAWorkerIsFree) {
  bool is_awake = false;
  std::atomic<bool> is_listed{false};  // Not seen in the hook: a tick may come before we look.
  auto wait = [&] {
    hook.wakes = self();
    is_listed = true;
    park();
    is_awake = true;
  };
  Thread* const waiting = team.go(wait);
  while (!is_listed) {
    sleep_for(kTickNs);
  }
  compute_until_ticked(1);
  join(*waiting);
  EXPECT_TRUE(is_awake);
}

/// A network that is polled often enough, or not.
class PolledHook final : public IdleHook {
 public:
  std::uint32_t poll(SchedulingPoint point) noexcept override {
    polls.fetch_add(point == SchedulingPoint::tick ? 1 : 0);
    return 0;
  }
  bool needs_tick() noexcept override {
    asked.fetch_add(1);
    return needs.load();
  }
  bool sleep(std::uint64_t, const std::atomic<std::uint32_t>&, std::uint32_t) noexcept override {
    return false;
  }
  void wake() noexcept override {}

  std::atomic<std::uint32_t> asked{0};
  std::atomic<std::uint32_t> polls{0};
  std::atomic<bool> needs{false};
};

TEST(TickerOfTeamThatTakesOver, WakesTheOneThatPollsOnlyWhereItIsNeeded) {
  PolledHook hook;
  TestTeam team{1, {.tick_ns = kTickNs, .take_over = true, .idle_hook = &hook}};
  if (!team->can_preempt()) {
    GTEST_SKIP() << "the system has no membarrier";
  }
  auto compute = [&] {
    while (hook.asked < 5) {
    }
    EXPECT_EQ(hook.polls, 0U);
    hook.needs = true;
    while (hook.polls < 3) {
    }
  };
  join(*team.go(compute));
}

class Counter final : public TickClient {
 public:
  explicit Counter(bool wants) : wanted{wants} {}
  bool wants_ticks() noexcept override { return wanted.load(); }
  std::uint32_t tick(std::uint64_t) noexcept override {
    ticks.fetch_add(1);
    return 1;
  }
  std::atomic<bool> wanted;
  std::atomic<std::uint32_t> ticks{0};
};

TEST(Ticker, CallsAllClientsWhileOneWantsIt) {
  Counter first{false};
  Counter second{true};
  TickClient* const clients[] = {&first, &second};
  Ticker ticker{{.interval_ns = kTickNs, .clients = clients}};
  ASSERT_TRUE(ticker.start());
  while (first.ticks < 3) {
    sleep_for(kTickNs);
  }
  second.wanted = false;
  while (!ticker.is_resting()) {
    sleep_for(kTickNs);
  }
  const std::uint32_t before = second.ticks;
  second.wanted = true;
  ticker.kick();
  while (second.ticks == before) {
    sleep_for(kTickNs);
  }
}

TEST(Ticker, ComesAfterAsManyIntervalsAsTheFirstOfItsClientsWants) {
  struct Patient final : TickClient {
    explicit Patient(std::uint32_t its_intervals) : intervals{its_intervals} {}
    bool wants_ticks() noexcept override { return true; }
    std::uint32_t tick(std::uint64_t) noexcept override {
      const std::uint64_t time = now_ns();
      is_early = is_early || (last_ns != 0 && time - last_ns < 3 * kTickNs);
      last_ns = time;
      ++ticks;
      return intervals;
    }
    const std::uint32_t intervals;
    std::uint64_t last_ns = 0;  // The ticker's only.
    std::atomic<bool> is_early{false};
    std::atomic<std::uint32_t> ticks{0};
  } first{3};
  Patient second{100'000'000};
  TickClient* const clients[] = {&first, &second};
  Ticker ticker{{.interval_ns = kTickNs, .clients = clients}};
  ASSERT_TRUE(ticker.start());
  while (second.ticks < 5) {
    sleep_for(kTickNs);
  }
  EXPECT_FALSE(first.is_early);
}

TEST(Ticker, OneThatIsLedTicksOnceEachTime) {
  Counter client{false};
  TickClient* const clients[] = {&client};
  Ticker ticker{{.interval_ns = 0, .clients = clients}};
  ASSERT_TRUE(ticker.start());
  for (std::uint32_t led = 1; led <= 100; ++led) {
    ticker.lead();
    while (client.ticks < led || !ticker.is_resting()) {
      std::this_thread::yield();
    }
    EXPECT_EQ(client.ticks, led);
  }
}

TEST(Ticker, ItsThreadHasAName) {
  struct Client final : TickClient {
    bool wants_ticks() noexcept override { return true; }
    std::uint32_t tick(std::uint64_t) noexcept override {
      char name[16] = {};
      (void)pthread_getname_np(pthread_self(), name, sizeof name);
      is_named = std::string_view{name} == "sterna-tick";
      ++ticks;
      return 1;
    }
    std::atomic<bool> is_named{false};
    std::atomic<std::uint32_t> ticks{0};
  } client;
  TickClient* const clients[] = {&client};
  Ticker ticker{{.interval_ns = kTickNs, .clients = clients}};
  ASSERT_TRUE(ticker.start());
  while (client.ticks == 0) {
    std::this_thread::yield();
  }
  ticker.finish();
  EXPECT_TRUE(client.is_named);
}

TEST(Ticker, StopsInEveryState) {
  Random random{3};
  for (int round = 0; round < 200; ++round) {
    Counter client{random.below(2) == 0};
    TickClient* const clients[] = {&client};
    const bool is_led = random.below(3) == 0;
    Ticker ticker{{.interval_ns = is_led ? 0 : 1 + random.below(3000), .clients = clients}};
    ASSERT_TRUE(ticker.start());
    sleep_for(random.below(200'000));
    client.wanted = !client.wanted;
    is_led ? ticker.lead() : ticker.kick();
    if (random.below(2) == 0) {
      ticker.stop();
    }
  }
}

}  // namespace
}  // namespace sterna::threads
