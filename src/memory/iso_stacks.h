// Stack slots of one class of one node. Private to IsoSpace.
#pragma once

#include <cstdint>
#include <vector>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "memory/iso_space.h"

namespace sterna::memory {

/// Lies where the descriptor of a used slot was: warm for its next user.
struct FreeSlot {
  std::uintptr_t next;
};

/// So many fresh slots get their guards in one system call, and their first pages in another.
inline constexpr std::uint32_t kGuardBatchMax = 64;

/// Gets memory for the highest page of each of several slots, in which descriptors and first frames
/// are: in one call it takes less than as many page faults in the midst of other code do. Not to be
/// called where there are several memory nodes: there a page belongs on that of its first user.
void touch_slots(Extent slots, std::size_t slot_bytes) noexcept;
/// Reads a file of the system.
[[nodiscard]] bool has_one_memory_node();
/// Makes the lowest page of each slot trap; they are mapped.
[[nodiscard]] Result<> guard_slots(Extent slots, std::size_t slot_bytes);

/// One mapping serves many slots: so many bytes, then twice as many each time.
inline constexpr std::size_t kMapAheadBytesMin = 4 << 20;
inline constexpr int kAdvisePopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14.

struct IsoSpace::StackClass {
  SpinLock lock;
  std::uintptr_t free STERNA_GUARDED_BY(lock) = 0;  // Base of the first FreeSlot; 0: none.
  // Mapped slots that were never used, those with guards and those without. Taken from the back.
  std::vector<Extent> guarded STERNA_GUARDED_BY(lock);
  std::vector<Extent> fresh STERNA_GUARDED_BY(lock);
  // Guards and pages for so many at once: doubles, so that who makes few threads pays for few.
  std::uint32_t guard_batch STERNA_GUARDED_BY(lock) = 1;
  std::size_t map_ahead STERNA_GUARDED_BY(lock) = kMapAheadBytesMin;
  // What is left of the leased range: neither mapped nor handed out.
  std::uintptr_t next STERNA_GUARDED_BY(lock) = 0;
  std::uintptr_t end STERNA_GUARDED_BY(lock) = 0;
  // The range after that, leased ahead; equal: none.
  std::uintptr_t spare STERNA_GUARDED_BY(lock) = 0;
  std::uintptr_t spare_end STERNA_GUARDED_BY(lock) = 0;
  bool is_asked STERNA_GUARDED_BY(lock) = false;      // The spare range is on its way.
  bool is_exhausted STERNA_GUARDED_BY(lock) = false;  // Node 0 has none left.
  bool took_first STERNA_GUARDED_BY(lock) = false;    // The range a node starts with is in use.
  std::uint32_t next_alone STERNA_GUARDED_BY(lock) = 1;  // Of a node that has all ranges.
  // What the destructor unmaps: these batches, but for the slots that departed, and those that
  // arrived.
  std::vector<Extent> batches STERNA_GUARDED_BY(lock);
  std::vector<std::uintptr_t> departed STERNA_GUARDED_BY(lock);
  std::vector<std::uintptr_t> adopted STERNA_GUARDED_BY(lock);
  std::uint64_t mapped_count STERNA_GUARDED_BY(lock) = 0;
  std::uint64_t free_count STERNA_GUARDED_BY(lock) = 0;  // Used, guarded and fresh ones.
  std::uint64_t lease_count STERNA_GUARDED_BY(lock) = 0;
};

/// Bytes of a leased range of a class: at most 4 GiB, so small that each node can have four, and a
/// slot at least.
[[nodiscard]] std::size_t range_bytes_of(std::uint32_t stack_class,
                                         std::uint32_t node_count) noexcept;

}  // namespace sterna::memory
