// Pages of entities: ordered, moved and counted on a machine that does not exist; and the system's
// call on this one.
#include "sched/pages.h"

#include <cerrno>
#include <map>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "sched/policies/builtin.h"
#include "sched/scheduler.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

constexpr std::size_t kPage = 4096;

/// Two memory nodes whose numbers are 0 and 1.
class FakePages final : public Pages {
 public:
  Result<> move(std::span<void* const> pages, int node, std::span<int> statuses) noexcept override {
    const SpinGuard guard{lock};
    largest_call = std::max(largest_call, pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const auto found = where.find(pages[i]);
      if (found != where.end() && node >= 0) {
        found->second = node;
      }
      statuses[i] = found != where.end() ? found->second : -ENOENT;
    }
    return Done{};
  }
  std::size_t count_on(int node) {
    const SpinGuard guard{lock};
    return static_cast<std::size_t>(
        std::ranges::count_if(where, [&](const auto& one) { return one.second == node; }));
  }

  SpinLock lock;
  std::map<void*, int> where;
  std::size_t largest_call = 0;
};

std::byte* address(std::uintptr_t page) {
  return reinterpret_cast<std::byte*>(page * kPage);
}

class MovedMemory : public testing::Test {
 protected:
  void touch(std::uintptr_t first, std::size_t count, int node) {
    for (std::size_t i = 0; i < count; ++i) {
      pages.where[address(first + i)] = node;
    }
  }
  std::unique_ptr<topology::Topology> topology =
      std::move(topology::Topology::synthetic("node:2 pu:2").value());
  FakePages pages;
  MemoryMover mover{*topology, pages};
  Entity entity;
  Entity other;
};

TEST_F(MovedMemory, IsMeasuredInWholePages) {
  touch(100, 3, 0);
  touch(103, 5, 1);
  ASSERT_TRUE(mover.own(entity, address(100) - 1, 8 * kPage + 2));
  ASSERT_TRUE(mover.own(entity, address(200), kPage));  // Never touched.
  ASSERT_TRUE(mover.own(other, address(300) + 1, kPage));
  const MemoryMap map = mover.measure(entity);
  EXPECT_EQ(map.on(0), 3 * kPage);
  EXPECT_EQ(map.on(1), 5 * kPage);
  EXPECT_EQ(mover.measure(other).total(), 0U) << "no whole page";
}

TEST_F(MovedMemory, ComesInPiecesAfterAnOrder) {
  constexpr std::size_t kCount = 1000;
  touch(1000, kCount, 0);
  touch(5000, 10, 0);
  ASSERT_TRUE(mover.own(entity, address(1000), kCount * kPage));
  ASSERT_TRUE(mover.own(other, address(5000), 10 * kPage));
  EXPECT_FALSE(mover.serve());
  mover.order(entity, 1);
  EXPECT_EQ(pages.count_on(1), 0U) << "an order takes no time";
  std::size_t calls = 0;
  while (mover.serve()) {
    ++calls;
  }
  EXPECT_EQ(calls, (kCount + MemoryMover::kChunkPages - 1) / MemoryMover::kChunkPages);
  EXPECT_EQ(pages.largest_call, MemoryMover::kChunkPages);
  EXPECT_EQ(pages.count_on(1), kCount);
  EXPECT_EQ(mover.moved_pages.load(), kCount);
  EXPECT_EQ(mover.measure(other).on(0), 10 * kPage);
  // A second order to where it is, and one of what is gone.
  mover.order(other, 1);
  mover.forget(other);
  EXPECT_FALSE(mover.serve());
}

TEST_F(MovedMemory, PagesThatAreGoneAreCounted) {
  touch(10, 4, 0);
  ASSERT_TRUE(mover.own(entity, address(10), 6 * kPage));
  mover.order(entity, 1);
  EXPECT_TRUE(mover.serve());
  EXPECT_EQ(mover.moved_pages.load(), 4U);
  EXPECT_EQ(mover.refused_pages.load(), 2U);
}

TEST_F(MovedMemory, FollowsWhatThePolicySendsAway) {
  auto opened = Scheduler::open({.topology = topology.get(),
                                 .workers = topology->pus(),
                                 .policy = std::move(make_policy("memory").value()),
                                 .pages = &pages});
  ASSERT_TRUE(opened);
  Scheduler& scheduler = *opened.value();
  const threads::TestTeam team{4, {.dispatch = &scheduler}};
  scheduler.attach(*team);
  // Four bubbles of equal load whose memory is all on node 0: two have to go, with their pages.
  constexpr std::size_t kEach = 300;
  Bubble bubbles[4];
  for (std::uintptr_t i = 0; i < 4; ++i) {
    touch(i * 1000 + 1, kEach, 0);
    ASSERT_TRUE(scheduler.engine().insert(scheduler.root(), bubbles[i]));
    ASSERT_TRUE(scheduler.own_memory(bubbles[i], address(i * 1000 + 1), kEach * kPage));
    EXPECT_EQ(scheduler.engine().stats(bubbles[i]).memory.on(0), kEach * kPage);
    bubbles[i].load = 10;
  }
  scheduler.engine().shake();
  for (int i = 0; i < 200'000 && pages.count_on(1) < 2 * kEach; ++i) {
    auto nothing = [] {};
    threads::join(*team.go(nothing));  // Workers without work carry it out.
    threads::sleep_for(100'000);
  }
  EXPECT_EQ(pages.count_on(1), 2 * kEach) << scheduler.engine().placement();
  std::size_t moved = 0;
  for (Bubble& bubble : bubbles) {
    moved += scheduler.engine().stats(bubble).memory.on(1) != 0 ? 1 : 0;
    scheduler.forget_memory(bubble);
    scheduler.engine().remove(bubble);
  }
  EXPECT_EQ(moved, 2U);
}

TEST(SystemPages, TellWhereAPageIsAndBringItToItsOwnNode) {
  void* const memory =
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<volatile char*>(memory)[0] = 1;  // The second page is not there.
  void* const pages[] = {memory, static_cast<std::byte*>(memory) + kPage};
  int statuses[2] = {-1, 0};
  errno = 0;
  const Result<> asked = system_pages().move(pages, -1, statuses);
  if (!asked) {
    // Containers forbid the call (their filter of system calls says EPERM), kernels built without
    // NUMA have none (ENOSYS). No other answer is excused.
    const int number = errno;
    (void)::munmap(memory, 2 * kPage);
    ASSERT_TRUE(number == EPERM || number == ENOSYS) << asked.error().text;
    GTEST_SKIP() << "the system refuses it here: " << asked.error().text;
  }
  EXPECT_GE(statuses[0], 0);
  // Before Linux 6.12 some that are not there are told from addresses that are nobody's, some not.
  EXPECT_TRUE(statuses[1] == -ENOENT || statuses[1] == -EFAULT) << statuses[1];
  const int node = statuses[0];
  ASSERT_TRUE(system_pages().move(std::span{pages}.first(1), node, std::span{statuses}.first(1)));
  EXPECT_EQ(statuses[0], node);
  (void)::munmap(memory, 2 * kPage);
}

}  // namespace
}  // namespace sterna::sched
