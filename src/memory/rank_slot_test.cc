// The slot of a rank: its parts, its heaps, and its move to another process by copy and by
// remapping.
#include "memory/rank_slot.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/iso_space.h"

namespace sterna::memory {
namespace {

constexpr std::uint32_t kRanks = 64;  // As in iso_space_test.cc: one process, one layout.

std::unique_ptr<IsoSpace> open_space(bool is_shared) {
  Result<std::unique_ptr<IsoSpace>> space =
      IsoSpace::open({.rank_count = kRanks, .is_rank_memory_shared = is_shared});
  EXPECT_TRUE(space) << (space ? "" : space.error().text);
  return std::move(space.value());
}

RankSlot& map(IsoSpace& space, std::uint32_t rank, const RankOptions& options = {}) {
  Result<RankSlot*> slot = space.map_rank(rank, options);
  EXPECT_TRUE(slot) << (slot ? "" : slot.error().text);
  return *slot.value();
}

class RankSlots : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Backing, RankSlots, testing::Bool());

TEST_P(RankSlots, EveryPartIsWritableAndFindsItsSlot) {
  const auto space = open_space(GetParam());
  RankSlot& slot = map(*space, 3);
  EXPECT_EQ(slot.magic, RankSlot::kMagic);
  EXPECT_EQ(slot.rank, 3u);
  Result<std::span<std::byte>> images = space->map_images(3, 10'000);
  ASSERT_TRUE(images);
  EXPECT_EQ(images.value().size(), 12'288u);
  ASSERT_TRUE(space->map_images(3, 100'000));
  const std::uintptr_t descriptor = descriptor_address(slot.stack.base);
  EXPECT_EQ(descriptor, descriptor_address(reinterpret_cast<std::uintptr_t>(&slot)));
  EXPECT_GT(descriptor, slot.stack.base);
  EXPECT_LE(descriptor + kDescriptorBytes, slot.stack.base + slot.stack.bytes);
  void* user = slot.user_heap->allocate(3 << 20);  // Grows the mapping.
  void* system = slot.system_heap->allocate(3 << 20);
  for (const std::uintptr_t address :
       {slot.stack.base, descriptor, slot.tls.base, slot.tls.base + slot.tls.bytes - 1,
        slot.images.base + 99'999, reinterpret_cast<std::uintptr_t>(user) + (3 << 20) - 1,
        reinterpret_cast<std::uintptr_t>(system) + (3 << 20) - 1}) {
    *reinterpret_cast<volatile char*>(address) = 1;
    EXPECT_EQ(rank_slot_of(address), &slot);
  }
  EXPECT_EQ(slot.magic, RankSlot::kMagic);
  slot.user_heap->check_invariants();
  slot.system_heap->check_invariants();
  EXPECT_FALSE(slot.has_refusal());
  EXPECT_EQ(space->rank_memory_fd(3) >= 0, GetParam());
}

TEST_P(RankSlots, BelowTheStackNothingIsMapped) {
  const auto space = open_space(GetParam());
  RankSlot& slot = map(*space, 0, {.stack_bytes = 64 << 10});
  EXPECT_EQ(slot.stack.bytes, 65'536u);
  unsigned char resident = 0;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(slot.stack.base), 4096, &resident), 0);
  EXPECT_NE(mincore(reinterpret_cast<void*>(slot.stack.base - 4096), 4096, &resident), 0);
}

TEST_P(RankSlots, WrongRequestsAreRefusedWithAReason) {
  const auto space = open_space(GetParam());
  map(*space, 1);
  EXPECT_FALSE(space->map_rank(1));
  EXPECT_FALSE(space->map_rank(kRanks));
  EXPECT_FALSE(space->map_rank(2, {.stack_bytes = std::size_t{1} << 45}));
  EXPECT_FALSE(space->map_rank(2, {.stack_bytes = 0}));
  EXPECT_FALSE(space->map_images(1, std::size_t{1} << 45));
  EXPECT_FALSE(space->adopt_rank({.rank = 2, .stack_bytes = 65'536, .images_bytes = 1}));
  EXPECT_FALSE(space->has_rank(2));
  // Another node of this process holds rank 1: nothing of it is touched.
  const auto other = open_space(GetParam());
  EXPECT_FALSE(other->map_rank(1));
  EXPECT_EQ(rank_slot_address(1)->magic, RankSlot::kMagic);
  space->unmap_rank(1);
  EXPECT_TRUE(other->map_rank(1));
}

// Fills a slot with what a rank would have; the stack pointer stands 10,000 bytes below the top.
std::uintptr_t live_a_little(IsoSpace& space, RankSlot& slot) {
  EXPECT_TRUE(space.map_images(slot.rank, 20'000));
  std::memset(reinterpret_cast<void*>(slot.images.base + 4096), 0x11, 4096);
  const std::uintptr_t stack_pointer = slot.stack.base + slot.stack.bytes - 10'000;
  std::memset(reinterpret_cast<void*>(stack_pointer), 0x22, 5'000);
  std::memset(reinterpret_cast<void*>(slot.tls.base), 0x33, 100);
  slot.tls_bytes_used = 100;
  auto** root = static_cast<char**>(slot.system_heap->allocate(sizeof(char*)));
  *root = static_cast<char*>(slot.user_heap->allocate(5 << 20));
  std::memset(*root, 0x44, 5 << 20);
  slot.mpi = root;
  return stack_pointer;
}

void expect_alive(RankSlot& slot) {
  EXPECT_EQ(slot.magic, RankSlot::kMagic);
  const auto byte_at = [](std::uintptr_t address) { return *reinterpret_cast<char*>(address); };
  EXPECT_EQ(byte_at(slot.images.base + 4096 + 4095), 0x11);
  EXPECT_EQ(byte_at(slot.stack.base + slot.stack.bytes - 10'000), 0x22);
  EXPECT_EQ(byte_at(slot.tls.base + 99), 0x33);
  char* block = *static_cast<char**>(slot.mpi);
  EXPECT_EQ(block[(5 << 20) - 1], 0x44);
  slot.system_heap->check_invariants();
  slot.user_heap->check_invariants();
  slot.user_heap->deallocate(block);
  EXPECT_EQ(slot.user_heap->live_bytes(), 0u);
  EXPECT_NE(slot.user_heap->allocate(50 << 20), nullptr);  // Grows on.
}

TEST_P(RankSlots, MovesByItsLiveExtents) {
  const auto source = open_space(GetParam());
  const auto target = open_space(!GetParam());  // The backing may differ.
  RankSlot& slot = map(*source, 9);
  const std::uintptr_t stack_pointer = live_a_little(*source, slot);
  const RankShape shape = shape_of(slot);
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> image;
  std::size_t bytes = 0;
  std::byte* last = nullptr;
  for_each_live_extent(slot, stack_pointer, [&](std::span<std::byte> extent) {
    EXPECT_GT(extent.data(), last);
    last = extent.data() + extent.size() - 1;
    bytes += extent.size();
    image.emplace_back(extent.data(), std::vector<std::byte>(extent.begin(), extent.end()));
  });
  EXPECT_LE(bytes, (5u << 20) + 100'000);
  // Of the images it is the loader that says what moves.
  const auto* const data = reinterpret_cast<const std::byte*>(slot.images.base + 4096);
  image.emplace_back(const_cast<std::byte*>(data), std::vector<std::byte>(data, data + 4096));
  source->unmap_rank(9);
  ASSERT_TRUE(target->adopt_rank(shape));
  for (const auto& [address, contents] : image) {
    std::memcpy(address, contents.data(), contents.size());
  }
  expect_alive(slot);
}

TEST(RankSlots, MovesToAnotherProcessByItsFile) {
  const auto source = open_space(true);
  RankSlot& slot = map(*source, 11);
  static_cast<void>(live_a_little(*source, slot));
  const RankShape shape = shape_of(slot);
  FileDescriptor file{dup(source->rank_memory_fd(11))};
  source->unmap_rank(11);
  const pid_t child = fork();
  if (child == 0) {
    const auto target = open_space(true);
    if (!target->adopt_rank(shape, std::move(file))) {
      _exit(1);
    }
    expect_alive(slot);
    _exit(testing::Test::HasFailure() ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

bool is_present(const void* address) {
  std::uint64_t entry = 0;
  const FileDescriptor map{::open("/proc/self/pagemap", O_RDONLY)};
  const auto page = reinterpret_cast<std::uintptr_t>(address) / kPageBytes;
  return ::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) ==
             sizeof entry &&
         (entry >> 63) != 0;
}

// As a node that prepares for a rank which goes on running elsewhere, and comes.
int prepare_and_take(const RankShape& early, const RankShape& late, FileDescriptor file,
                     int told_fd, int prepared_fd, const std::byte* page) {
  const auto target = open_space(true);
  if (!target->adopt_rank(early, std::move(file)) || is_present(page)) {
    return 1;
  }
  PopulateCursor cursor;
  while (target->populate_rank(early.rank, cursor)) {
  }
  char go = is_present(page) ? 'y' : 'n';
  if (::write(prepared_fd, &go, 1) != 1 || ::read(told_fd, &go, 1) != 1) {
    return 2;
  }
  RankShape other = late;
  other.stack_bytes += kPageBytes;
  if (target->grow_adopted(early, other) || !target->grow_adopted(early, late)) {
    return 3;
  }
  RankSlot& slot = *rank_slot_address(early.rank);
  slot.user_heap->check_invariants();
  slot.system_heap->check_invariants();
  if (go != 'y' || *page != std::byte{9}) {
    return 4;
  }
  // And let go of, when the rank runs elsewhere again: what it holds stays.
  PopulateCursor again;
  while (target->depopulate_rank(early.rank, again)) {
  }
  return is_present(page) ? 5 : *page == std::byte{9} ? 0 : 6;
}

TEST(RankSlots, ArePreparedWhileTheRankRunsElsewhereAndGrow) {
  const auto source = open_space(true);
  RankSlot& slot = map(*source, 12);
  auto* page = static_cast<std::byte*>(slot.user_heap->allocate(3 * kPageBytes)) + kPageBytes;
  *page = std::byte{8};
  const RankShape early = shape_of(slot);
  // The heap grows after the preparation; of the later shape the child learns when it is forked.
  const RankShape late{.rank = early.rank,
                       .stack_bytes = early.stack_bytes,
                       .images_bytes = early.images_bytes,
                       .system_heap_bytes = early.system_heap_bytes,
                       .user_heap_bytes = early.user_heap_bytes + (std::size_t{8} << 20)};
  FileDescriptor file{dup(source->rank_memory_fd(12))};
  int tell[2];
  int prepared[2];
  ASSERT_EQ(::pipe(tell), 0);
  ASSERT_EQ(::pipe(prepared), 0);
  const pid_t child = fork();
  if (child == 0) {
    source->unmap_rank(12);
    _exit(prepare_and_take(early, late, std::move(file), tell[0], prepared[1], page));
  }
  char answer = 0;
  ASSERT_EQ(::read(prepared[0], &answer, 1), 1);
  *page = std::byte{9};  // The rank runs on, and uses its heap.
  void* more = slot.user_heap->allocate(std::size_t{4} << 20);
  ASSERT_NE(more, nullptr);
  EXPECT_LE(shape_of(slot).user_heap_bytes, late.user_heap_bytes);
  EXPECT_GT(shape_of(slot).user_heap_bytes, early.user_heap_bytes);
  ASSERT_EQ(::write(tell[1], &answer, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int fd : {tell[0], tell[1], prepared[0], prepared[1]}) {
    ::close(fd);
  }
}

// Of the mapping that `address` lies in.
bool asks_for_large_pages(std::uintptr_t address) {
  std::ifstream maps{"/proc/self/smaps"};
  bool is_in_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      is_in_it = from <= address && address < to;
    } else if (is_in_it && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(RankSlots, WhatIsLargeAndAboutToComeGetsLargePages) {
  if (::access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) {
    // The kernel was built without them: there madvise refuses what is looked at here, and ranks
    // have small pages. Where they are built in but switched off, the wish is noted all the same.
    GTEST_SKIP() << "this kernel was built without transparent huge pages";
  }
  constexpr std::size_t kLarge = 2 << 20;
  const auto space = open_space(false);
  const RankRegions regions = rank_regions(13);
  ASSERT_TRUE(space->adopt_rank({.rank = 13,
                                 .stack_bytes = 65'536,
                                 .system_heap_bytes = 1 << 20,
                                 .user_heap_bytes = 6 * kLarge}));
  const std::uintptr_t heap = regions.user_heap.base;
  ASSERT_EQ(heap % kLarge, 0u);
  // Half of page 0, in two parts; less than half of page 1; the end of 2, all of 3, half of 4.
  const Extent live[] = {{heap, kLarge / 4},
                         {heap + kLarge / 2, kLarge / 4},
                         {heap + kLarge, kLarge / 2 - kPageBytes},
                         {heap + 2 * kLarge + kPageBytes, 2 * kLarge + kLarge / 2},
                         {heap + 5 * kLarge, kPageBytes}};
  IsoSpace::expect_contents(live);
  for (const auto& [page, is_large] : std::vector<std::pair<std::size_t, bool>>{
           {0, true}, {1, false}, {2, true}, {3, true}, {4, true}, {5, false}}) {
    EXPECT_EQ(asks_for_large_pages(heap + page * kLarge), is_large) << page;
    EXPECT_EQ(asks_for_large_pages(heap + page * kLarge + kLarge - 1), is_large) << page;
  }
  IsoSpace::expect_contents({});
}

TEST(RankSlots, OfOneProcessAreEmptiedInSteps) {
  const auto space = open_space(false);
  RankSlot& slot = map(*space, 14);
  ASSERT_TRUE(space->map_images(14, 10'000));
  auto* const image = reinterpret_cast<std::byte*>(slot.images.base);
  auto* const user = static_cast<std::byte*>(slot.user_heap->allocate(5 << 20));
  auto* const system = static_cast<std::byte*>(slot.system_heap->allocate(3 << 20));
  for (std::byte* const byte : {image, user, user + (5 << 20) - 1, system}) {
    *byte = std::byte{7};
  }
  PopulateCursor cursor;
  int steps = 0;
  while (space->depopulate_rank(14, cursor)) {
    ++steps;
  }
  EXPECT_GE(steps, 10);
  for (const std::byte* const byte : {image, user, user + (5 << 20) - 1, system}) {
    EXPECT_FALSE(is_present(byte));
  }
  EXPECT_FALSE(space->depopulate_rank(14, cursor));
  space->unmap_rank(14);
}

}  // namespace
}  // namespace sterna::memory
