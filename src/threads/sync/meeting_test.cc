// Meetings of threads on 1 to 8 workers, and the lock that a worker owns.
#include "threads/sync/meeting.h"

#include <atomic>
#include <thread>
#include <vector>

#include "threads/direct.h"
#include "threads/queues/owned_lock.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class MeetingTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, MeetingTest, testing::Values(1, 2, 3, 8));

TEST_P(MeetingTest, TheLastWorksForAllWhileTheOthersWait) {
  constexpr int kThreads = 37;
  constexpr int kRounds = kSanitizedTests ? 50 : 2000;
  Meeting meeting{kThreads};
  // Plain memory: written by each before it arrives, read and written by the last.
  std::vector<int> given(kThreads);
  int sum = 0;
  int meetings_held = 0;
  std::atomic<int> number{0};
  std::atomic<int> wrong{0};
  auto function = [&] {
    const int mine = number.fetch_add(1);
    for (int round = 0; round < kRounds; ++round) {
      given[static_cast<std::size_t>(mine)] = mine + round;
      if ((mine + round) % 11 == 0) {
        yield();  // Another order of arrival, another worker.
      }
      Seat seat;
      if (Seat* const others = meeting.arrive(seat); others != nullptr) {
        int count = 1;
        for (const Seat* other = others; other != nullptr; other = other->next) {
          ++count;
        }
        wrong += count != kThreads ? 1 : 0;
        sum = 0;
        for (const int value : given) {
          sum += value;
        }
        ++meetings_held;
        Meeting::let_go(others, [](Seat&) noexcept {});
      }
      // Nobody changes it before all have arrived again.
      wrong += sum != kThreads * (kThreads - 1) / 2 + kThreads * round ? 1 : 0;
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(team.go(function));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(meetings_held, kRounds);
}

TEST_P(MeetingTest, SomeWaitByOtherMeans) {
  constexpr int kThreads = 6;
  constexpr int kRounds = kSanitizedTests ? 50 : 1000;
  struct Member {
    Seat seat;  // First: found by it.
    Semaphore told{0};
    int rounds = 0;
  };
  Meeting meeting{kThreads};
  std::vector<Member> members(kThreads);
  std::atomic<int> number{0};
  std::atomic<int> wrong{0};
  auto function = [&] {
    const int mine = number.fetch_add(1);
    Member& me = members[static_cast<std::size_t>(mine)];
    for (int round = 0; round < kRounds; ++round) {
      me.rounds = round + 1;
      const bool sleeps = (mine + round) % 3 != 0;
      Seat* const others = sleeps ? meeting.arrive(me.seat) : meeting.arrive_awake(me.seat);
      if (others == nullptr) {
        if (!sleeps) {
          me.told.acquire();
        }
        continue;
      }
      for (const Member& member : members) {
        wrong += member.rounds != round + 1 ? 1 : 0;
      }
      Meeting::let_go(others,
                      [](Seat& seat) noexcept { reinterpret_cast<Member&>(seat).told.release(); });
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(team.go(function));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong, 0);
}

// Sections of an owner against holders from other workers and from a kernel thread: one plain
// count, which all of them change.
TEST_P(MeetingTest, AnOwnedLockExcludesSectionsAndHolders) {
  constexpr int kThreads = 8;
  constexpr long kRounds = kSanitizedTests ? 2000 : 30'000;
  OwnedLock lock;
  long count = 0;
  std::atomic<long> sections{0};
  auto add = [&] {
    const long seen = count;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count = seen + 1;
  };
  auto owner = [&] {
    Thread& me = *self();
    for (long i = 0; i < kRounds; ++i) {
      bool is_done = false;
      {
        const DirectSection section{me};
        if (section.owns(lock)) {
          lock.count_use();
          add();
          is_done = true;
        }
      }
      if (is_done) {
        ++sections;
      } else {
        const OwnedGuard guard{lock};
        add();
        if (lock.should_claim()) {
          lock.claim(*me.worker.load(std::memory_order_relaxed));
        }
      }
      if (i % 64 == 0) {
        yield();
      }
    }
  };
  auto holder = [&] {
    for (long i = 0; i < kRounds / 100; ++i) {
      for (int k = 0; k < 50; ++k) {
        cpu_pause();
      }
      const OwnedGuard guard{lock};
      add();
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(i % 4 == 3 ? team.go(holder) : team.go(owner));
  }
  std::thread foreign{holder};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  foreign.join();
  const long owners = kThreads - kThreads / 4;
  EXPECT_EQ(count, owners * kRounds + (kThreads / 4 + 1) * (kRounds / 100));
  EXPECT_GT(sections, 0);
}

}  // namespace
}  // namespace sterna::threads
