// The heap of a rank against a naive model, with random operations; its bytes copied to another
// process; the mistakes of programs that it must notice.
#include "memory/heap.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/random.h"

namespace sterna::memory {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// Where no one else maps anything, and the sanitizers neither.
std::byte* const kPlace =
    reinterpret_cast<std::byte*>(kIsThreadSanitized ? 0x20'0000'0000 : 0x5200'0000'0000);

class Memory {
 public:
  explicit Memory(std::size_t bytes_max, std::size_t bytes = kMiB, bool is_shared = false)
      : bytes_max_{bytes_max} {
    int fd = -1;
    if (is_shared) {
      fd = memfd_create("heap_test", 0);
      EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes_max)), 0);
    }
    void* base = mmap(kPlace, bytes, PROT_READ | PROT_WRITE,
                      (is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_FIXED_NOREPLACE |
                          MAP_NORESERVE,
                      fd, 0);
    EXPECT_EQ(base, kPlace);
    if (fd >= 0) {
      close(fd);
    }
    region = {kPlace, bytes, bytes_max,
              is_shared ? HeapBacking::shared_file : HeapBacking::private_pages};
  }
  ~Memory() { munmap(kPlace, bytes_max_); }

  HeapRegion region;

 private:
  std::size_t bytes_max_;
};

std::size_t resident_bytes(std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(mincore(kPlace, bytes, pages.data()), 0);
  return 4096 * static_cast<std::size_t>(std::count_if(
                    pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

// A block of the model: its bytes hold a pattern made of its number.
struct Block {
  std::size_t bytes;
  std::uint8_t pattern;
};

class Model {
 public:
  Model(Heap& heap, std::uint64_t seed) : heap_{heap}, random_{seed} {}

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 45 || blocks_.empty()) {
      add();
    } else if (choice < 85) {
      remove(pick());
    } else {
      resize(pick());
    }
  }
  void verify() {
    std::size_t asked = 0;
    for (const auto& [address, block] : blocks_) {
      ASSERT_TRUE(holds(address, block));
      asked += block.bytes;
    }
    heap_.check_invariants();
    ASSERT_GE(heap_.live_bytes(), asked);
    ASSERT_EQ(heap_.counters().live_count, blocks_.size());
  }
  void remove_all() {
    while (!blocks_.empty()) {
      remove(blocks_.begin());
    }
  }

 private:
  using Place = std::map<std::byte*, Block>::iterator;

  std::size_t random_bytes() {
    switch (random_.below(8)) {
      case 0:
        return random_.below(300'000);
      case 1:
        return random_.below(30) == 0 ? random_.below(6'000'000) : 70'000;
      case 2:
      case 3:
        return random_.below(30'000);
      default:
        return random_.below(600);
    }
  }
  Place pick() {
    auto place = blocks_.lower_bound(blocks_.begin()->first + random_.below(96 * kMiB));
    return place == blocks_.end() ? blocks_.begin() : place;
  }
  void add() {
    const std::size_t bytes = random_bytes();
    const std::size_t alignment = random_.below(5) == 0 ? std::size_t{1} << random_.below(18) : 16;
    const bool is_zeroed = alignment == 16 && random_.below(4) == 0;
    auto* address = static_cast<std::byte*>(is_zeroed ? heap_.allocate_zeroed(bytes)
                                                      : heap_.allocate(bytes, alignment));
    if (address == nullptr) {
      ASSERT_GT(bytes, 0u);
      return;
    }
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(address) % alignment, 0u);
    ASSERT_GE(heap_.usable(address), bytes);
    ASSERT_TRUE(heap_.contains(address));
    const auto next = blocks_.lower_bound(address);
    ASSERT_TRUE(next == blocks_.end() || address + bytes <= next->first);
    ASSERT_TRUE(next == blocks_.begin() ||
                std::prev(next)->first + std::prev(next)->second.bytes <= address);
    if (is_zeroed) {
      ASSERT_TRUE(holds(address, {bytes, 0}));
    }
    blocks_[address] = {bytes, static_cast<std::uint8_t>(random_.next() | 1)};
    // What is usable may be written.
    std::memset(address, blocks_[address].pattern, heap_.usable(address));
  }
  bool holds(const std::byte* address, const Block& block) const {
    // Each byte is as the one before it: libc's comparison, which sanitizers check as a whole. Byte
    // by byte this test is minutes of theirs.
    return block.bytes == 0 || (*address == std::byte{block.pattern} &&
                                std::memcmp(address, address + 1, block.bytes - 1) == 0);
  }
  void remove(Place place) {
    ASSERT_TRUE(holds(place->first, place->second));
    std::byte* address = place->first;
    blocks_.erase(place);
    heap_.deallocate(address);
  }
  void resize(Place place) {
    const Block old = place->second;
    const std::size_t bytes =
        random_.below(2) == 0 ? old.bytes + random_.below(old.bytes + 100) : random_bytes();
    auto* address = static_cast<std::byte*>(heap_.reallocate(place->first, bytes));
    if (address == nullptr) {
      ASSERT_TRUE(holds(place->first, old));
      return;
    }
    ASSERT_TRUE(holds(address, {std::min(bytes, old.bytes), old.pattern}));
    blocks_.erase(place);
    blocks_[address] = {bytes, old.pattern};
    std::memset(address, old.pattern, heap_.usable(address));
  }

  Heap& heap_;
  Random random_;
  std::map<std::byte*, Block> blocks_;
};

struct Case {
  std::size_t bytes_max;
  bool is_shared;
  bool is_locked;
};

class HeapModel : public testing::TestWithParam<Case> {};

TEST_P(HeapModel, RandomOperationsAgreeWithTheModel) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    Memory memory{GetParam().bytes_max, kMiB, GetParam().is_shared};
    memory.region.is_locked = GetParam().is_locked;
    Heap* heap = Heap::create_in(memory.region);
    Model model{*heap, seed};
    for (int i = 0; i < 6000 && !HasFatalFailure(); ++i) {
      model.step();
      if (i % 400 == 0) {
        model.verify();
      }
      if (i % 1999 == 0) {
        heap->trim();
      }
    }
    model.verify();
    model.remove_all();
    heap->check_invariants();
    EXPECT_EQ(heap->live_bytes(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Regions, HeapModel,
                         testing::Values(Case{1024 * kMiB, false, false},
                                         Case{1024 * kMiB, true, false},
                                         Case{12 * kMiB, true, false},  // Runs out of memory.
                                         Case{1024 * kMiB, false, true}));

TEST(HeapClasses, EverySizeFitsItsClassAndWastesAtMostAFifth) {
  for (std::size_t bytes = 1; bytes <= kSmallBytesMax; ++bytes) {
    const std::uint32_t size_class = class_of(bytes);
    ASSERT_LT(size_class, kSizeClassCount);
    ASSERT_GE(class_bytes(size_class), bytes);
    ASSERT_TRUE(size_class == 0 || class_bytes(size_class - 1) < bytes);
    ASSERT_TRUE(bytes <= 128 || (class_bytes(size_class) - bytes) * 5 <= class_bytes(size_class));
  }
}

TEST(Heap, NothingAndTooMuchAreAnswered) {
  Memory memory{4 * kMiB};
  Heap* heap = Heap::create_in(memory.region);
  void* nothing = heap->allocate(0);
  EXPECT_NE(nothing, nullptr);
  heap->deallocate(nothing);
  heap->deallocate(nullptr);
  EXPECT_EQ(heap->allocate(5 * kMiB), nullptr);
  EXPECT_EQ(heap->allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(heap->allocate(~std::size_t{0} - 70'000), nullptr);
  EXPECT_EQ(heap->allocate(16, std::size_t{1} << 40), nullptr);
  EXPECT_EQ(heap->allocate_zeroed(~std::size_t{0}), nullptr);
  void* block = heap->reallocate(nullptr, 100);
  EXPECT_EQ(heap->reallocate(block, ~std::size_t{0} - 4096), nullptr);
  heap->deallocate(block);
  heap->check_invariants();
}

TEST(Heap, ALargeBlockGrowsInPlaceWhenItCan) {
  Memory memory{1024 * kMiB};
  Heap* heap = Heap::create_in(memory.region);
  void* block = heap->allocate(kMiB);
  EXPECT_EQ(heap->reallocate(block, 40 * kMiB), block);
  void* wall = heap->allocate(kMiB);
  EXPECT_EQ(heap->reallocate(block, 20 * kMiB), block);
  EXPECT_EQ(heap->reallocate(block, 30 * kMiB), block);
  EXPECT_NE(heap->reallocate(block, 60 * kMiB), block);
  heap->deallocate(wall);
  heap->check_invariants();
}

TEST(Heap, FreedMemoryGoesBackToTheSystem) {
  for (const bool is_shared : {false, true}) {
    Memory memory{1024 * kMiB, 256 * kMiB, is_shared};
    // Systems that give large pages unasked have the rest of one resident with each small page.
    ASSERT_EQ(madvise(kPlace, 256 * kMiB, MADV_NOHUGEPAGE), 0);
    Heap* heap = Heap::create_in(memory.region);
    void* blocks[4];
    for (void*& block : blocks) {
      block = heap->allocate(32 * kMiB);
      std::memset(block, 1, 32 * kMiB);
    }
    EXPECT_GE(resident_bytes(256 * kMiB), 128 * kMiB);
    heap->deallocate(blocks[1]);
    EXPECT_LE(resident_bytes(256 * kMiB), 97 * kMiB);
    heap->deallocate(blocks[3]);
    heap->deallocate(blocks[2]);
    heap->deallocate(blocks[0]);
    heap->trim();
    EXPECT_LE(resident_bytes(256 * kMiB), kMiB);
    heap->check_invariants();
  }
}

TEST(Heap, LiveExtentsLeaveOutWhatWasNeverUsed) {
  Memory memory{1024 * kMiB};
  Heap* heap = Heap::create_in(memory.region);
  static_cast<void>(heap->allocate(100));
  void* hole = heap->allocate(64 * kMiB);
  static_cast<void>(heap->allocate(100'000));
  heap->deallocate(hole);
  std::size_t bytes = 0;
  std::byte* last = nullptr;
  heap->for_each_live_extent([&](std::span<std::byte> extent) {
    EXPECT_GT(extent.data(), last);
    last = extent.data() + extent.size() - 1;
    bytes += extent.size();
  });
  EXPECT_LE(bytes, 100'000 + 5 * 4096u);
}

// The move of a rank: live extents are written to a pipe, all is unmapped and mapped again, as in
// another process at the same addresses, and the heap goes on.
TEST(Heap, GoesOnFromItsLiveExtents) {
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> image;
  std::map<unsigned char*, std::size_t> blocks;
  std::size_t mapped = 0;
  Random random{11};
  {
    Memory memory{1024 * kMiB};
    Heap* heap = Heap::create_in(memory.region);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t bytes = 1 + random.below(random.below(20) == 0 ? 400'000 : 500);
      auto* block = static_cast<unsigned char*>(heap->allocate(bytes));
      std::memset(block, static_cast<int>(bytes % 251), bytes);
      blocks[block] = bytes;
      if (random.below(3) == 0) {
        heap->deallocate(blocks.begin()->first);
        blocks.erase(blocks.begin());
      }
    }
    mapped = heap->mapped_bytes();
    heap->for_each_live_extent([&](std::span<std::byte> extent) {
      image.emplace_back(extent.data(), std::vector<std::byte>(extent.begin(), extent.end()));
    });
  }
  Memory memory{1024 * kMiB, mapped};
  for (const auto& [address, bytes] : image) {
    std::memcpy(address, bytes.data(), bytes.size());
  }
  auto* heap = reinterpret_cast<Heap*>(kPlace);
  heap->check_invariants();
  EXPECT_EQ(heap->counters().live_count, blocks.size());
  for (const auto& [address, bytes] : blocks) {
    ASSERT_EQ(std::count(address, address + bytes, bytes % 251), static_cast<long>(bytes));
    heap->deallocate(address);
  }
  EXPECT_EQ(heap->live_bytes(), 0u);
  Model model{*heap, 5};
  for (int i = 0; i < 2000; ++i) {
    model.step();
  }
  model.verify();
}

TEST(Heap, ALockedHeapServesSeveralThreads) {
  Memory memory{1024 * kMiB};
  memory.region.is_locked = true;
  Heap* heap = Heap::create_in(memory.region);
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    threads.emplace_back([heap, seed] {
      Random random{seed};
      std::vector<unsigned char*> blocks;
      for (int i = 0; i < 5000; ++i) {
        const std::size_t bytes = 1 + random.below(i % 50 == 0 ? 100'000 : 300);
        blocks.push_back(static_cast<unsigned char*>(heap->allocate(bytes)));
        *blocks.back() = static_cast<unsigned char>(seed);
        if (random.below(2) == 0) {
          std::swap(blocks.back(), blocks[random.below(blocks.size())]);
          EXPECT_EQ(*blocks.back(), seed);
          heap->deallocate(blocks.back());
          blocks.pop_back();
        }
      }
      for (unsigned char* block : blocks) {
        heap->deallocate(block);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  heap->check_invariants();
  EXPECT_EQ(heap->live_bytes(), 0u);
}

using HeapDeath = testing::Test;

TEST(HeapDeath, MistakesStopTheProcessWithASentence) {
  testing::FLAGS_gtest_death_test_style = "fast";
  Memory memory{64 * kMiB};
  Heap* heap = Heap::create_in(memory.region);
  void* small = heap->allocate(40);
  void* neighbour = heap->allocate(40);
  void* large = heap->allocate(100'000);
  void* wall = heap->allocate(100'000);
  EXPECT_DEATH((heap->deallocate(small), heap->deallocate(small)), "freed once");
  EXPECT_DEATH((heap->deallocate(small), heap->deallocate(neighbour), heap->deallocate(small)),
               "freed once");
  EXPECT_DEATH((heap->deallocate(large), heap->deallocate(large)), "freed once");
  EXPECT_DEATH(heap->deallocate(static_cast<char*>(small) + 8), "by the address");
  EXPECT_DEATH(heap->deallocate(static_cast<char*>(large) + 16), "by the address");
  int local = 0;
  EXPECT_DEATH(heap->deallocate(&local), "not of this heap");
  EXPECT_DEATH(heap->deallocate(heap), "not of this heap");
  EXPECT_DEATH((std::memset(large, 0, 140'000), heap->deallocate(wall)), "nothing was written");
}

}  // namespace
}  // namespace sterna::memory
