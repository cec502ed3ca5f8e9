// Who sleeps in the kernel for the network, in a team of several workers: one that has nothing to
// run, as soon as it has not, whatever the others do; and it holds up none of them.
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "progress/completion.h"
#include "progress/progress.h"
#include "threads/scheduler.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::progress {
namespace {

constexpr std::uint32_t kWorkers = 3;

/// The index of the worker that the caller is, or kWorkers.
std::uint32_t worker_here() {
  const threads::Worker* const worker = threads::current_worker();
  return worker != nullptr ? worker->index : kWorkers;
}

/// Notes which workers sleep there.
class NotedHook final : public threads::IdleHook {
 public:
  explicit NotedHook(Progress& progress) : progress_{progress} {}
  std::uint32_t poll(threads::SchedulingPoint point) noexcept override {
    return progress_.poll(point);
  }
  bool needs_tick() noexcept override { return progress_.needs_tick(); }
  bool sleep(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
             std::uint32_t expected) noexcept override {
    sleeps.at(worker_here()).fetch_add(1);
    EXPECT_EQ(inside.fetch_add(1), 0U) << "one sleeps for all";
    const bool has_slept = progress_.sleep(deadline_ns, word, expected);
    inside.fetch_sub(1);
    return has_slept;
  }
  std::uint64_t absence_ns(const std::atomic<std::uint32_t>& word) noexcept override {
    const std::uint64_t absence_ns = progress_.absence_ns(word);
    absences.fetch_add(absence_ns != 0 ? 1 : 0);
    return absence_ns;
  }
  void note_work() noexcept override { progress_.note_work(); }
  void wake() noexcept override { progress_.wake(); }

  std::atomic<std::uint32_t> absences{0};
  std::array<std::atomic<std::uint32_t>, kWorkers + 1> sleeps{};
  std::atomic<std::uint32_t> inside{0};

 private:
  Progress& progress_;
};

/// Completes when its descriptor says so, and notes who found that, and who polled meanwhile.
class EventSource final : public Source {
 public:
  explicit EventSource(const NotedHook& hook) : hook_{hook} {}
  ~EventSource() { ::close(event_); }
  std::uint32_t poll() noexcept override {
    if (worker_here() != 0 && hook_.inside.load() != 0) {
      is_polled_beside.store(true);
    }
    std::uint64_t count = 0;
    if (::read(event_, &count, sizeof count) != sizeof count) {
      return 0;
    }
    finder.store(worker_here());
    has_come.complete();
    return 1;
  }
  int fd() noexcept override { return event_; }
  void send() const {
    const std::uint64_t one = 1;
    check(::write(event_, &one, sizeof one) == sizeof one, "it is sent");
  }

  Completion has_come;
  std::atomic<std::uint32_t> finder{kWorkers};
  std::atomic<bool> is_polled_beside{false};

 private:
  const NotedHook& hook_;
  const int event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

class Watcher : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(progress.add(source)); }
  void TearDown() override { progress.remove(source); }

  const std::unique_ptr<Progress> opened{std::move(Progress::open({}).value())};
  Progress& progress = *opened;
  NotedHook hook{progress};
  EventSource source{hook};
};

TEST_F(Watcher, IsTheFirstWorkerWithoutWorkWhileTheOthersCompute) {
  const threads::TestTeam team{kWorkers, {.spin_ns = 0, .idle_hook = &hook}};
  std::atomic<bool> polls{false};
  std::atomic<bool> is_over{false};
  std::atomic<std::uint32_t> computing{0};
  auto compute = [&] {  // Nor does it poll, until it is told to.
    computing.fetch_add(1);
    while (!is_over.load()) {
      if (polls.load()) {
        (void)progress.poll();
      }
    }
  };
  auto wait = [&] { source.has_come.wait(progress); };
  std::array<threads::Thread*, kWorkers> started{};
  for (std::uint32_t i = 1; i < kWorkers; ++i) {
    started[i] = team.go(compute, {.worker = i, .bound = true});
  }
  while (computing.load() != kWorkers - 1) {
    std::this_thread::yield();
  }
  const std::uint32_t of_others = hook.sleeps[1].load() + hook.sleeps[2].load();
  started[0] = team.go(wait, {.worker = 0, .bound = true});

  // With two of three at work the third sleeps for the network; what comes wakes it.
  const std::uint32_t before = hook.sleeps[0].load();
  while (hook.sleeps[0].load() == before || hook.inside.load() == 0) {
    std::this_thread::yield();
  }
  source.send();
  join(*started[0]);
  EXPECT_EQ(source.finder.load(), 0U);

  // And while it sleeps again the others poll as they like.
  polls.store(true);
  while (!source.is_polled_beside.load()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(hook.sleeps[1].load() + hook.sleeps[2].load(), of_others) << "who has work";
  is_over.store(true);
  join(*started[1]);
  join(*started[2]);
}

TEST_F(Watcher, StaysAwayWhileAKernelThreadWaitsAndComesBack) {
  const threads::TestTeam team{1, {.spin_ns = 0, .idle_hook = &hook}};
  const auto await_it = [&] {
    source.has_come.wait(progress);
    source.has_come.reset();
  };
  // It sleeps for the network, and what comes wakes it, too, until it has learnt.
  while (hook.absences.load() == 0) {
    std::thread sender{[&] {
      threads::sleep_for(2'000'000);
      source.send();
    }};
    await_it();
    sender.join();
  }
  // Nobody waits: it is found by the worker, sooner or later.
  do {
    source.send();
    while (!source.has_come.done()) {
      std::this_thread::yield();
    }
    source.has_come.reset();
  } while (source.finder.load() != 0);
}

}  // namespace
}  // namespace sterna::progress
