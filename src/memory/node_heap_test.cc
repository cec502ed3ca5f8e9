// Heaps of memory nodes: blocks, and where their pages are.
#include "memory/node_heap.h"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sterna::memory {
namespace {

/// The node of the page of that address; negative: the system does not say.
int node_of(void* address) {
  void* page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{4095});
  int node = -1;
  return ::syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &node, 0) == 0 ? node : -1;
}

TEST(NodeHeap, GivesMemoryOfItsNode) {
  constexpr std::array<std::uint32_t, 1> kFirst{0};
  auto opened = NodeHeap::open(kFirst);
  ASSERT_TRUE(opened);
  NodeHeap& node = *opened.value();
  for (const std::size_t bytes : {1U, 100U, 5000U, 3U << 20}) {
    void* const block = node.heap().allocate(bytes);
    ASSERT_NE(block, nullptr);
    std::memset(block, 0x5a, bytes);
    EXPECT_TRUE(node.heap().contains(block));
    const int where = node_of(block);
    EXPECT_TRUE(!node.is_bound() || where < 0 || where == 0) << where;
    node.heap().deallocate(block);
  }
  EXPECT_EQ(node.heap().live_bytes(), 0U);
}

TEST(NodeHeap, NodesThatAreNotThereBindNothing) {
  constexpr std::array<std::uint32_t, 2> kMissing{1022, 1023};
  auto opened = NodeHeap::open(kMissing);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened.value()->is_bound());
  void* const block = opened.value()->heap().allocate_zeroed(10'000);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(static_cast<char*>(block)[9'999], 0);
}

TEST(NodeHeap, ManyKernelThreadsUseIt) {
  auto opened = NodeHeap::open({});
  ASSERT_TRUE(opened);
  Heap& heap = opened.value()->heap();
  std::vector<std::thread> users;
  for (unsigned char mark = 1; mark <= 4; ++mark) {
    users.emplace_back([&heap, mark] {
      std::vector<unsigned char*> blocks;
      for (std::size_t i = 0; i < 4000; ++i) {
        const std::size_t bytes = 16 + i * 37 % 700;
        auto* const block = static_cast<unsigned char*>(heap.allocate(bytes));
        ASSERT_NE(block, nullptr);
        std::memset(block, mark, bytes);
        blocks.push_back(block);
        if (i % 3 == 0) {
          EXPECT_EQ(*blocks[i / 3], mark);
        }
      }
      for (unsigned char* const block : blocks) {
        EXPECT_EQ(*block, mark);
        heap.deallocate(block);
      }
    });
  }
  for (std::thread& user : users) {
    user.join();
  }
  EXPECT_EQ(heap.live_bytes(), 0U);
  heap.check_invariants();
}

}  // namespace
}  // namespace sterna::memory
