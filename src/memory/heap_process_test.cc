// The heap in process mode: the same calls, served by libc.
#include <cstring>

#include <gtest/gtest.h>

#include "memory/heap.h"

namespace sterna::memory {
namespace {

TEST(ProcessHeap, ForwardsToLibc) {
  Heap* heap = Heap::process();
  auto* block = static_cast<char*>(heap->allocate(100));
  std::strcpy(block, "tern");
  block = static_cast<char*>(heap->reallocate(block, 100'000));
  EXPECT_STREQ(block, "tern");
  EXPECT_GE(heap->usable(block), 100'000u);
  EXPECT_FALSE(heap->contains(block));
  heap->deallocate(block);
  void* aligned = heap->allocate(10, 256);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0u);
  heap->deallocate(aligned);
  EXPECT_TRUE(heap->is_process());
}

}  // namespace
}  // namespace sterna::memory
