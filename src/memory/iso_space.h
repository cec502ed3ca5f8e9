// The part of the address space that has the same meaning in every node: stack slots of threads and
// the slots of ranks. One object a node; several (simulated nodes) may live in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/annotate.h"
#include "base/result.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "memory/layout.h"
#include "memory/rank_slot.h"

namespace sterna::memory {

/// A stack slot. A value; whoever holds it owns the memory until it is released or departs.
struct StackSlot {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;

  /// kDescriptorBytes for the thread, zero when the slot was never used.
  [[nodiscard]] void* descriptor() const noexcept {
    return reinterpret_cast<void*>(descriptor_address(base));
  }
  /// The usable stack is [stack_low(), stack_top()); stack_top() is aligned to 64.
  [[nodiscard]] std::uintptr_t stack_low() const noexcept { return base + kPageBytes; }
  [[nodiscard]] std::uintptr_t stack_top() const noexcept { return descriptor_address(base); }
};

/// Upcall of IsoSpace for more addresses: a job asks its node 0, tests count. Called without locks,
/// by a thread that acquires a stack; may switch.
class LeaseSource {
 public:
  LeaseSource() noexcept = default;
  virtual ~LeaseSource() = default;
  LeaseSource(const LeaseSource&) = delete;
  LeaseSource& operator=(const LeaseSource&) = delete;
  /// A range of the class that no node was given before, and not below IsoOptions::node_count
  /// (those are what the nodes start with).
  [[nodiscard]] virtual Result<std::uint32_t> lease(std::uint32_t stack_class) noexcept = 0;
  /// Whether lease() may switch or wait for others: then it is not called where that is forbidden,
  /// and ranges are asked for ahead.
  [[nodiscard]] virtual bool is_slow() const noexcept { return false; }
  /// Asks for such a range and does not wait: IsoSpace::add_range brings it. False: none will come.
  virtual bool lease_ahead(std::uint32_t) noexcept { return false; }
};

struct IsoOptions {
  std::uint32_t node_index = 0;
  std::uint32_t node_count = 1;
  std::uint32_t rank_count = 1;       // Of the job: decides the size of rank slots.
  LeaseSource* leases = nullptr;      // Null: a node lives with its first range; alone, it has all.
  bool is_rank_memory_shared = true;  // By memfd: a rank can move without a copy. Else anonymous.
};

/// How far populate_rank has come: offsets in the slot.
struct PopulateCursor {
  std::uint64_t next = 0;
  std::uint64_t data_end = 0;  // Of the part of the file that `next` is in.
};
inline constexpr std::size_t kPopulateStepBytes = 1 << 20;  // About 0.1 ms.

struct IsoCounters {
  std::uint64_t stacks_mapped = 0;  // Slots ever mapped by this node.
  std::uint64_t stacks_free = 0;    // Waiting for reuse.
  std::uint64_t leases_held = 0;
  std::uint64_t ranks_mapped = 0;
};

/// Makes the lowest `bytes` of a stack trap, or usable again. `low` and `bytes` are multiples of
/// kPageBytes. Fails when the system has no more mappings.
[[nodiscard]] Result<> add_stack_guard(std::byte* low, std::size_t bytes);
void remove_stack_guard(std::byte* low, std::size_t bytes) noexcept;

class IsoSpace {
 public:
  /// Maps nothing yet. Refuses a rank_count whose slots differ from those of a space that this
  /// process has opened before.
  [[nodiscard]] static Result<std::unique_ptr<IsoSpace>> open(const IsoOptions& options);
  /// Unmaps every slot it mapped: no thread may be on them.
  ~IsoSpace();
  IsoSpace(const IsoSpace&) = delete;
  IsoSpace& operator=(const IsoSpace&) = delete;

  // Stacks. Any thread, also a user thread on a slot; takes a spin lock for a few instructions.

  /// A slot whose stack has `bytes` at least. Used ones first, whose contents are undefined.
  /// out_of_memory: no lease or no memory left, with the reason. timed_out, only if it may not wait
  /// (inside a poll): all addresses are in use, more were asked for; after add_range try again.
  [[nodiscard]] Result<StackSlot> acquire_stack(std::size_t bytes, bool may_wait = true);
  /// A range that was asked for by LeaseSource::lease_ahead. Any thread; does not switch.
  void add_range(std::uint32_t stack_class, std::uint32_t range) noexcept;
  /// Nobody answers any more: what was asked for will not come.
  void forget_asked_ranges() noexcept;
  void release_stack(StackSlot slot) noexcept;
  /// The thread of this slot has left with its contents: its memory goes, its address stays taken.
  void depart_stack(StackSlot slot) noexcept;
  /// A thread arrives on a slot of another node (or comes back): maps it, zeroed. The slot is ours
  /// from then on, also for reuse.
  [[nodiscard]] Result<StackSlot> adopt_stack(std::uintptr_t base);

  // Ranks. Called by whoever owns the rank's life; not twice at once for one rank.

  /// The slot of a rank that is born here: header and both heaps are ready to use.
  [[nodiscard]] Result<RankSlot*> map_rank(std::uint32_t rank, const RankOptions& options = {});
  /// The same mappings for a rank that arrives, of the shape it had; contents are zero until the
  /// migration writes the live extents. With `memory_fd` (rank_memory_fd of the source, received
  /// over a socket; owned from now on) the contents are there at once.
  [[nodiscard]] Result<RankSlot*> adopt_rank(const RankShape& shape, FileDescriptor memory_fd = {});
  /// All bytes of `live` (ascending, of a rank that was adopted without its contents) are about to
  /// be written: asks the system for large pages where they are half of one or more. To fault 4 KiB
  /// pages in and to give them back costs several times what copying their bytes does.
  static void expect_contents(std::span<const Extent> live) noexcept;
  /// A rank that was adopted ahead of its coming has grown its heaps meanwhile: maps what is new.
  /// invalid_argument: it has changed in another way, and must be unmapped and adopted anew.
  [[nodiscard]] Result<> grow_adopted(const RankShape& before, const RankShape& now);
  /// Enters pages that the memory file of the rank holds into this process's page tables, so that
  /// the rank does not fault on them here: up to kPopulateStepBytes, from `cursor` on. Reads and
  /// writes no byte. False: there is no more to do. The rank is mapped here and stays so meanwhile.
  [[nodiscard]] bool populate_rank(std::uint32_t rank, PopulateCursor& cursor) noexcept;
  /// The reverse, so that unmap_rank() is quick: to forget page tables costs about half as much as
  /// to fill them, at once 50 ms for 1 GiB. The rank is mapped here and runs elsewhere, if at all.
  [[nodiscard]] bool depopulate_rank(std::uint32_t rank, PopulateCursor& cursor) noexcept;
  /// Forgets the rank: all of its slot is unmapped, whatever was mapped there.
  void unmap_rank(std::uint32_t rank) noexcept;
  /// Memory for the loader, writable, zero, at the start of the images region; again with more
  /// bytes it grows. Part of the rank's backing memory. The loader may map file pages over it.
  [[nodiscard]] Result<std::span<std::byte>> map_images(std::uint32_t rank, std::size_t bytes);
  /// What backs the slot: byte i of the slot is byte i of this file. -1: the rank is not here, or
  /// its memory is anonymous.
  [[nodiscard]] int rank_memory_fd(std::uint32_t rank) noexcept;
  [[nodiscard]] bool has_rank(std::uint32_t rank) noexcept;

  [[nodiscard]] IsoCounters counters() noexcept;
  [[nodiscard]] const IsoOptions& options() const noexcept { return options_; }

 private:
  struct StackClass;
  struct RankMemory;

  explicit IsoSpace(const IsoOptions& options);

  const IsoOptions options_;
  // Whether it does not matter who touches a page first. Found out when the space is opened: a
  // thread is born in a poll, too, which reads no files.
  const bool has_one_memory_node_;
  [[nodiscard]] Result<> map_stacks(std::uint32_t stack_class, bool may_wait);
  void take_addresses(std::uint32_t stack_class, Extent& taken) noexcept;
  [[nodiscard]] Result<> get_range(std::uint32_t stack_class, bool may_wait);
  [[nodiscard]] bool ask_ahead(std::uint32_t stack_class) noexcept;
  [[nodiscard]] Extent take_fresh(std::uint32_t stack_class) noexcept;
  [[nodiscard]] std::uintptr_t pop_ready(std::uint32_t stack_class) noexcept;
  [[nodiscard]] Result<std::uintptr_t> make_ready(std::uint32_t stack_class, bool may_wait);
  void unmap_stacks() noexcept;
  [[nodiscard]] IsoCounters stack_counters() noexcept;
  [[nodiscard]] Result<> lease_range(std::uint32_t stack_class);
  [[nodiscard]] Result<> map_rank_memory(const RankShape& shape, FileDescriptor file);
  [[nodiscard]] RankMemory* find_rank(std::uint32_t rank) noexcept;
  /// The next step of a walk over what the memory file of a rank holds. Null: there is no more.
  [[nodiscard]] std::byte* next_of_rank(std::uint32_t rank, PopulateCursor& cursor,
                                        std::size_t& bytes) noexcept;

  std::unique_ptr<StackClass[]> classes_;  // Each guards itself.
  SpinLock ranks_lock_;
  // By rank; null: not here. The objects do not move.
  std::vector<std::unique_ptr<RankMemory>> ranks_ STERNA_GUARDED_BY(ranks_lock_);
};

}  // namespace sterna::memory
