// Threads that wait for descriptors: one by one, many at one descriptor, in both directions, with
// deadlines, cancelled, and with no worker left to poll but one that sleeps.
#include "progress/readiness.h"

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "threads/control/cancel.h"
#include "threads/team_fixture.h"

namespace sterna::progress {
namespace {

using Outcome = Readiness::Outcome;

class ReadinessTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    progress = std::move(Progress::open().value());
    team = std::make_unique<threads::TestTeam>(GetParam(),
                                               threads::TeamOptions{.idle_hook = progress.get()});
    readiness = std::move(Readiness::open(*progress).value());
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  }
  void TearDown() override {
    readiness.reset();
    team.reset();
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Outcome wait(std::uint32_t events, std::uint64_t deadline_ns = kNever) {
    int error = 0;
    return readiness->wait(ends[0], events, deadline_ns, error);
  }
  void send() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  }

  std::unique_ptr<Progress> progress;
  std::unique_ptr<threads::TestTeam> team;
  std::unique_ptr<Readiness> readiness;
  int ends[2] = {-1, -1};
};
INSTANTIATE_TEST_SUITE_P(Workers, ReadinessTest, testing::Values(1, 2, 4));

TEST_P(ReadinessTest, WaitsForWhatComesAndForWhatIsThere) {
  for (int i = 0; i < 50; ++i) {
    auto waits = [&] {
      EXPECT_EQ(wait(EPOLLIN), Outcome::ready);
      take();
    };
    threads::Thread* const waiter = team->go(waits);
    if (i % 2 == 0) {  // It sleeps already, and so do the workers.
      team->run([] { threads::sleep_for(200'000); });
    }
    send();
    threads::join(*waiter);
  }
  team->run([&] { EXPECT_EQ(wait(EPOLLOUT), Outcome::ready); });
}

TEST_P(ReadinessTest, BothDirectionsOfOneDescriptorAreWaitedForAtOnce) {
  char block[4096] = {};
  while (::write(ends[0], block, sizeof block) > 0) {
  }
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  auto reads = [&] {
    EXPECT_EQ(wait(EPOLLIN), Outcome::ready);
    ++readers;
  };
  auto writes = [&] {
    EXPECT_EQ(wait(EPOLLOUT), Outcome::ready);
    ++writers;
  };
  threads::Thread* waiters[4] = {team->go(reads), team->go(writes), team->go(reads),
                                 team->go(writes)};
  team->run([] { threads::sleep_for(300'000); });
  EXPECT_EQ(readers + writers, 0);
  send();
  threads::join(*waiters[0]);
  threads::join(*waiters[2]);
  EXPECT_EQ(writers, 0) << "the others wait on";
  while (::read(ends[1], block, sizeof block) > 0) {
  }
  threads::join(*waiters[1]);
  threads::join(*waiters[3]);
}

TEST_P(ReadinessTest, DeadlinesErrorsAndFilesThatAreAlwaysReady) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  team->run([&] {
    int error = 0;
    EXPECT_EQ(wait(EPOLLIN, now_ns() + 1'000'000), Outcome::timed_out);
    EXPECT_EQ(readiness->wait(file, EPOLLIN, kNever, error), Outcome::always);
    EXPECT_EQ(readiness->wait(987, EPOLLIN, kNever, error), Outcome::failed);
    EXPECT_EQ(error, EBADF);
    send();
    EXPECT_EQ(wait(EPOLLIN, now_ns() + 100'000'000'000), Outcome::ready);
    take();
    ::shutdown(ends[1], SHUT_RDWR);
    EXPECT_EQ(wait(EPOLLIN), Outcome::ready) << "the end is an event, too";
  });
  ::close(file);
}

TEST_P(ReadinessTest, CancelledThreadsLeaveNothing) {
  for (int i = 0; i < 40; ++i) {
    auto waits = [&] {
      (void)wait(EPOLLIN);
      ADD_FAILURE() << "a cancelled wait does not return";
    };
    threads::Thread* const waiter = team->go(waits, {.cancellable = true});
    if (i % 2 == 0) {
      team->run([] { threads::sleep_for(100'000); });
    }
    threads::cancel(*waiter);
    EXPECT_EQ(threads::try_join_until(*waiter, kNever), threads::JoinOutcome::cancelled);
  }
  send();
  team->run([&] { EXPECT_EQ(wait(EPOLLIN), Outcome::ready); });
}

bool is_readable(int descriptor) {
  ::pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

/// Whether a set of epoll has that descriptor.
bool is_watched(int set, int descriptor) {
  std::ifstream info{"/proc/self/fdinfo/" + std::to_string(set)};
  int found = -1;
  for (std::string word; info >> word;) {
    if (word == "tfd:" && info >> found && found == descriptor) {
      return true;
    }
  }
  return false;
}

// What stays armed is ready from then on, and so is the set that idle workers sleep on.
TEST_P(ReadinessTest, WorkersSleepThoughWhatNobodyWaitsForIsReady) {
  const int other_number = ::dup(ends[0]);
  std::atomic<bool> is_over{false};
  auto waits = [&] {
    EXPECT_EQ(wait(EPOLLIN, now_ns() + 20'000'000), Outcome::timed_out);
    is_over = true;
  };
  threads::Thread* const waiter = team->go(waits);
  while (!is_watched(readiness->fd(), ends[0]) && !is_over) {
    std::this_thread::yield();
  }
  // As a program may, whatever a sanitizer thinks of who waits.
  ::syscall(SYS_close, ends[0]);
  threads::join(*waiter);
  ends[0] = other_number;
  send();
  constexpr std::uint64_t kSleepsMax = 2'000;
  const std::uint64_t sleeps_before = progress->counters().sleeps;
  while (is_readable(readiness->fd()) && progress->counters().sleeps - sleeps_before < kSleepsMax) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(is_readable(readiness->fd())) << "the workers go to sleep, and wake at once";
  team->run([&] { EXPECT_EQ(wait(EPOLLIN), Outcome::ready) << "it can be waited for again"; });
  take();
}

TEST_P(ReadinessTest, ManyPairsPassAByteToAndFro) {
  constexpr int kPairs = 12;
  constexpr int kRounds = 60;
  struct Side {
    Readiness* readiness;
    int descriptor;
    bool is_first;
    void operator()() const {
      for (int i = 0; i < kRounds; ++i) {
        char byte = 'x';
        int error = 0;
        if (is_first) {
          EXPECT_EQ(::write(descriptor, &byte, 1), 1);
        }
        while (::read(descriptor, &byte, 1) != 1) {
          EXPECT_EQ(readiness->wait(descriptor, EPOLLIN, kNever, error), Outcome::ready);
        }
        if (!is_first) {
          EXPECT_EQ(::write(descriptor, &byte, 1), 1);
        }
      }
    }
  };
  std::vector<Side> sides;
  for (int i = 0; i < kPairs; ++i) {
    int pair[2] = {};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    sides.push_back({readiness.get(), pair[0], true});
    sides.push_back({readiness.get(), pair[1], false});
  }
  std::vector<threads::Thread*> started;
  for (Side& side : sides) {
    started.push_back(team->go(side));
  }
  for (threads::Thread* const one : started) {
    threads::join(*one);
  }
  for (const Side& side : sides) {
    ::close(side.descriptor);
  }
}

}  // namespace
}  // namespace sterna::progress
