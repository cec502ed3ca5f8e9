// The iso-address space: arithmetic of slots, stacks and their guards, leases between simulated
// nodes, slots of ranks and their moves.
#include "memory/iso_space.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sterna::memory {
namespace {

class CounterLeases final : public LeaseSource {
 public:
  explicit CounterLeases(std::uint32_t first) noexcept : next_{first} {}
  Result<std::uint32_t> lease(std::uint32_t) noexcept override { return next_++; }

 private:
  std::uint32_t next_;
};

// All tests of this program open spaces of one layout, as one process must.
constexpr std::uint32_t kRanks = 64;

std::unique_ptr<IsoSpace> open_space(IsoOptions options = {}) {
  options.rank_count = kRanks;
  Result<std::unique_ptr<IsoSpace>> space = IsoSpace::open(options);
  EXPECT_TRUE(space) << (space ? "" : space.error().text);
  return std::move(space.value());
}

StackSlot acquire(IsoSpace& space, std::size_t bytes = 60'000) {
  Result<StackSlot> slot = space.acquire_stack(bytes);
  EXPECT_TRUE(slot) << (slot ? "" : slot.error().text);
  return slot.value();
}

// The signal that kills a child which runs `body`, 0 when it ends well.
template <typename Body>
int signal_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Layout, TheSizeOfRankSlotsFollowsTheirCount) {
  EXPECT_EQ(rank_slot_shift_for(kRankCountMax), kRankSlotShiftMin);
  const std::size_t area_log = kClassAreaShift + 5;
  EXPECT_EQ(rank_slot_shift_for(1), std::min<std::size_t>(area_log, kRankSlotShiftMax));
  EXPECT_EQ(rank_slot_shift_for(64), std::min<std::size_t>(area_log - 6, kRankSlotShiftMax));
  EXPECT_EQ(rank_slot_shift_for(65), std::min<std::size_t>(area_log - 7, kRankSlotShiftMax));
}

TEST(Layout, EveryAddressOfASlotFindsItsDescriptor) {
  const auto space = open_space();
  constexpr std::uintptr_t kBytes = 8 * 68 << 10;
  const std::uintptr_t slot = kIsoBase + 3 * kClassAreaBytes + 5 * kBytes;
  for (const std::uintptr_t offset : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{4096},
                                      std::uintptr_t{70'000}, kBytes - 1}) {
    EXPECT_EQ(slot_at(slot + offset).base, slot);
    EXPECT_EQ(slot_bytes_at(slot + offset), kBytes);
    EXPECT_EQ(descriptor_address(slot + offset), slot + kBytes - 1024 - (31 - (5 + 3 * 8)) * 64);
  }
  EXPECT_EQ(slot_bytes_at(kIsoBase - 1), 0u);
  EXPECT_EQ(slot_bytes_at(kIsoBase + kStackClassCount * kClassAreaBytes), 0u);
  EXPECT_EQ(slot_bytes_at(kIsoEnd), 0u);
  EXPECT_EQ(rank_slot_of(kRankBase - 1), nullptr);
  EXPECT_EQ(rank_slot_of(kIsoEnd), nullptr);
  EXPECT_EQ(rank_slot_of(&space), nullptr);
  const std::uintptr_t rank7 = kRankBase + (std::uintptr_t{7} << rank_slot_shift());
  EXPECT_EQ(rank_slot_of(rank7), rank_slot_address(7));
  EXPECT_EQ(rank_slot_of(rank7 - 1), rank_slot_address(6));
  EXPECT_EQ(descriptor_address(rank7), descriptor_address(rank7 + slot_bytes_at(rank7) - 1));
}

TEST(Layout, NoAddressOfTheIsoSpaceIsFarFromIt) {
  EXPECT_TRUE(is_near_iso(kIsoBase));
  EXPECT_TRUE(is_near_iso(stack_area(kStackClassCount - 1) + kClassAreaBytes - 1));
  EXPECT_TRUE(is_near_iso(kRankBase));
  EXPECT_TRUE(is_near_iso(kIsoEnd - 1));
  EXPECT_FALSE(is_near_iso(kIsoBase - 1));
  EXPECT_FALSE(is_near_iso(kIsoEnd));
  int local = 0;
  EXPECT_FALSE(is_near_iso(reinterpret_cast<std::uintptr_t>(&local)));
}

TEST(Layout, TheDescriptorOfAStackIsThatOfItsSlot) {
  const auto space = open_space();
  for (std::uint32_t stack_class = 0; stack_class < kStackClassCount; ++stack_class) {
    const std::size_t bytes = kStackSlotBytesMin << stack_class;
    const std::uintptr_t area = kIsoBase + stack_class * kClassAreaBytes;
    const std::uintptr_t count = kClassAreaBytes / bytes;  // 0: too large for ThreadSanitizer's.
    std::set<std::uintptr_t> numbers;
    for (std::uintptr_t i = 0; i < 40; ++i) {
      numbers.insert({i, count / 3 + i, count - 1 - i});
    }
    numbers.erase(numbers.lower_bound(count), numbers.end());
    for (const std::uintptr_t number : numbers) {
      const std::uintptr_t base = area + number * bytes;
      const std::uintptr_t expected =
          base + bytes - kDescriptorBytes - (31 - (number + 8 * stack_class) % 32) * 64;
      EXPECT_EQ(slot_at(base).number, number);
      EXPECT_EQ(slot_at(base).base, base);
      for (const std::uintptr_t offset : {std::size_t{0}, std::size_t{70}, bytes / 2, bytes - 1}) {
        EXPECT_EQ(descriptor_address(base + offset), expected) << stack_class << " " << number;
      }
    }
  }
}

TEST(Layout, OneProcessHasOneLayout) {
  const auto space = open_space();
  Result<std::unique_ptr<IsoSpace>> other = IsoSpace::open({.rank_count = kRankCountMax});
  if (rank_slot_shift() == kRankSlotShiftMin) {
    // The thread sanitizer leaves so few addresses that slots are the smallest there are, whatever
    // the count: no second layout can be asked for.
    GTEST_SKIP() << "in this build slots are the smallest for any count of ranks";
  }
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text.find("were laid out"), std::string::npos);
}

TEST(Stacks, ASlotIsUsableWritableAndUsedAgainFirst) {
  const auto space = open_space();
  const StackSlot first = acquire(*space);
  EXPECT_GE(first.stack_top() - first.stack_low(), 60'000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.descriptor()) % 64, 0u);
  EXPECT_EQ(*static_cast<std::uint64_t*>(first.descriptor()), 0u);
  std::memset(reinterpret_cast<void*>(first.stack_low()), 1,
              first.base + first.bytes - first.stack_low());
  const StackSlot second = acquire(*space);
  EXPECT_NE(second.base, first.base);
  EXPECT_EQ(*static_cast<std::uint64_t*>(second.descriptor()), 0u);
  space->release_stack(first);
  EXPECT_EQ(acquire(*space).base, first.base);
  EXPECT_FALSE(space->acquire_stack(std::size_t{8} << 30));
  EXPECT_FALSE(space->acquire_stack(~std::size_t{0}));
}

TEST(Stacks, DescriptorsOfNeighboursHaveOtherColours) {
  const auto space = open_space();
  std::set<std::uintptr_t> colours;
  for (int i = 0; i < 32; ++i) {
    colours.insert(reinterpret_cast<std::uintptr_t>(acquire(*space).descriptor()) % 4096);
  }
  EXPECT_EQ(colours.size(), 32u);
}

TEST(Stacks, AThreadAndWhatItSpawnsOnASmallerStackHaveOtherColours) {
  const auto space = open_space();
  std::set<std::uintptr_t> colours;
  for (const std::size_t bytes : {60u << 10, 100u << 10, 200u << 10, 400u << 10}) {
    Result<StackSlot> slot = space->acquire_stack(bytes);
    ASSERT_TRUE(slot);
    colours.insert(reinterpret_cast<std::uintptr_t>(slot.value().descriptor()) % 4096 / 256);
  }
  EXPECT_EQ(colours.size(), 4u);  // Apart by more than the two lines that each birth touches.
}

TEST(Stacks, AStackOfAPowerOfTwoHasRoomInASlotLittleLarger) {
  const auto space = open_space();
  for (const std::size_t bytes : {128u << 10, 256u << 10, 1u << 20, 8u << 20}) {
    Result<StackSlot> slot = space->acquire_stack(bytes);
    ASSERT_TRUE(slot);
    EXPECT_GE(slot.value().stack_top() - slot.value().stack_low(), bytes);
    EXPECT_EQ(slot.value().bytes, bytes / 16 * 17);
  }
}

TEST(Stacks, ALoneNodeHasAllAddressesOfAClass) {
  const auto space = open_space();
  // More than a range holds, of a class of which few are mapped at once.
  constexpr std::size_t kBytes = std::size_t{600} << 20;
  std::set<std::uintptr_t> bases;
  const std::size_t count = std::min<std::size_t>(20, kClassAreaBytes / (2 * kBytes));
  for (std::size_t i = 0; i < count; ++i) {
    Result<StackSlot> slot = space->acquire_stack(kBytes);
    ASSERT_TRUE(slot) << slot.error().text;
    EXPECT_TRUE(bases.insert(slot.value().base).second);
  }
}

TEST(Stacks, TheGuardPageTraps) {
  const auto space = open_space();
  const StackSlot slot = acquire(*space);
  const auto touch = [](std::uintptr_t address) {
    return [address] { *reinterpret_cast<volatile char*>(address) = 1; };
  };
  EXPECT_EQ(signal_of_child(touch(slot.stack_low())), 0);
  EXPECT_NE(signal_of_child(touch(slot.stack_low() - 1)), 0);
  EXPECT_NE(signal_of_child(touch(slot.base)), 0);
}

TEST(Stacks, GuardsThatCameByTheBatchTrap) {
  const auto space = open_space();
  std::vector<StackSlot> slots;
  for (int i = 0; i < 300; ++i) {  // Batches of 1, 2, 4 ... 64, and several mappings.
    slots.push_back(acquire(*space));
  }
  for (const std::size_t i : {0, 1, 2, 3, 6, 7, 62, 63, 64, 126, 127, 128, 200, 299}) {
    const auto touch = [](std::uintptr_t address) {
      return [address] { *reinterpret_cast<volatile char*>(address) = 1; };
    };
    EXPECT_EQ(signal_of_child(touch(slots[i].stack_low())), 0) << i;
    EXPECT_NE(signal_of_child(touch(slots[i].stack_low() - 1)), 0) << i;
    EXPECT_EQ(*static_cast<std::uint64_t*>(slots[i].descriptor()), 0u) << i;
  }
}

bool is_in_memory(std::uintptr_t page) {
  unsigned char bits = 0;
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(page), kPageBytes, &bits), 0);
  return (bits & 1) != 0;
}

// Whether first pages can come by the batch here, and should: one memory node, and a kernel that
// gets memory for several ranges of its caller in one call.
bool should_touch_ahead() {
  std::string nodes;
  std::ifstream{"/sys/devices/system/node/has_memory"} >> nodes;
  if (nodes.find_first_of("-,") != std::string::npos) {
    return false;
  }
  void* const pages = ::mmap(nullptr, 3 * kPageBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(pages, MAP_FAILED);
  const iovec two[] = {{pages, kPageBytes},
                       {static_cast<std::byte*>(pages) + 2 * kPageBytes, kPageBytes}};
  const long done = ::syscall(SYS_process_madvise, -10000, two, 2, 23, 0);
  ::munmap(pages, 3 * kPageBytes);
  return done == static_cast<long>(2 * kPageBytes);
}

TEST(Stacks, FirstPagesOfManyComeWithTheirGuardsAndNoOthers) {
  if (!should_touch_ahead()) {  // Then pages come by faults, one by one, as before.
    GTEST_SKIP() << "several memory nodes, or a kernel that does not advise of many pages at once";
  }
  const auto space = open_space();
  std::vector<StackSlot> slots;
  for (int i = 0; i < 300; ++i) {
    slots.push_back(acquire(*space));
  }
  const auto top_of = [](const StackSlot& slot) { return slot.base + slot.bytes - kPageBytes; };
  std::size_t tops = 0;
  for (const StackSlot& slot : slots) {
    tops += is_in_memory(top_of(slot)) ? 1 : 0;
    for (std::uintptr_t page = slot.stack_low(); page < top_of(slot); page += kPageBytes) {
      EXPECT_FALSE(is_in_memory(page)) << page - slot.base;
    }
  }
  // But for the first slot, and for one at the end of a mapping that would be a batch on its own.
  EXPECT_GE(tops, slots.size() - 4);
  // What has memory before it is wanted is the rest of a batch.
  std::size_t ahead = 0;
  for (std::uintptr_t top = top_of(slots.back()) + slots.back().bytes; is_in_memory(top);
       top += slots.back().bytes) {
    ++ahead;
  }
  EXPECT_LT(ahead, 64u);
}

TEST(Stacks, TheSpaceUnmapsItsSlotsAndLeavesThoseThatDeparted) {
  const auto other = open_space({.node_index = 1, .node_count = 2});
  auto space = open_space({.node_index = 0, .node_count = 2});
  std::vector<StackSlot> slots;
  for (int i = 0; i < 130; ++i) {
    slots.push_back(acquire(*space));
  }
  // The first and the last of a batch, two side by side; each is the other space's now.
  const std::set<std::size_t> departing{0, 20, 21, 63, 64, 100};
  for (const std::size_t i : departing) {
    space->depart_stack(slots[i]);
    ASSERT_TRUE(other->adopt_stack(slots[i].base));
  }
  space.reset();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool is_mapped =
        ::msync(reinterpret_cast<void*>(slots[i].base), kPageBytes, MS_ASYNC) == 0;
    EXPECT_EQ(is_mapped, departing.contains(i)) << i;
  }
}

TEST(Stacks, NodesTakeTheirRangesAndLeaseMore) {
  CounterLeases leases{2};
  const auto first = open_space({.node_index = 0, .node_count = 2, .leases = &leases});
  const auto second = open_space({.node_index = 1, .node_count = 2, .leases = &leases});
  // Slots of 1088 MiB: three to a range of 4 GiB (one, in the small space of ThreadSanitizer).
  const std::size_t bytes = std::size_t{1} << 30;
  std::set<std::uintptr_t> bases;
  for (IsoSpace* space : {first.get(), second.get(), first.get(), first.get()}) {
    Result<StackSlot> slot = space->acquire_stack(bytes + 1);
    if (slot) {
      EXPECT_TRUE(bases.insert(slot.value().base).second);
    } else {
      EXPECT_EQ(slot.error().code, Errc::out_of_memory);
    }
  }
  EXPECT_GE(bases.size(), 2u);
  EXPECT_GE(first->counters().leases_held, 1u);
  const auto alone = open_space({.node_index = 1, .node_count = 2});
  Result<StackSlot> slot{Errc::closed};
  for (int i = 0; i < 3; ++i) {
    slot = alone->acquire_stack(std::size_t{3} << 30);
  }
  ASSERT_FALSE(slot);
  EXPECT_NE(slot.error().text.find("node 1: "), std::string::npos) << slot.error().text;
}

TEST(Stacks, ASlotDepartsAndIsAdopted) {
  const auto source = open_space({.node_index = 0, .node_count = 2});
  const auto target = open_space({.node_index = 1, .node_count = 2});
  const StackSlot slot = acquire(*source);
  std::memset(slot.descriptor(), 7, kDescriptorBytes);
  EXPECT_FALSE(target->adopt_stack(slot.base));  // Still there.
  source->depart_stack(slot);
  ASSERT_TRUE(target->adopt_stack(slot.base));
  EXPECT_EQ(*static_cast<char*>(slot.descriptor()), 0);
  EXPECT_FALSE(target->adopt_stack(slot.base + 64));
  target->release_stack(slot);
  EXPECT_EQ(acquire(*target).base, slot.base);
  EXPECT_NE(acquire(*source).base, slot.base);
}

TEST(Stacks, SeveralThreadsGetDifferentSlots) {
  const auto space = open_space();
  std::vector<std::vector<StackSlot>> taken(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < taken.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        taken[t].push_back(acquire(*space));
        *static_cast<std::size_t*>(taken[t].back().descriptor()) = t;
        if (i % 3 == 0) {
          space->release_stack(taken[t].back());
          taken[t].pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::set<std::uintptr_t> bases;
  for (std::size_t t = 0; t < taken.size(); ++t) {
    for (const StackSlot& slot : taken[t]) {
      EXPECT_TRUE(bases.insert(slot.base).second);
      EXPECT_EQ(*static_cast<std::size_t*>(slot.descriptor()), t);
    }
  }
}

}  // namespace
}  // namespace sterna::memory
