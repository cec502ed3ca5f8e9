// Memory that belongs to entities, and bringing its pages to a memory node (NUMA), as the policy
// memory orders.
//
// An order is a note at the area; workers without work carry it out, some pages at a time, outside
// all locks. The pages are the program's: one that it has unmapped meanwhile is refused by the
// system, which does no harm.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/spin_lock.h"
#include "sched/entity.h"
#include "topology/topology.h"

namespace sterna::sched {

/// What the system does with pages. From any kernel thread.
class Pages {
 public:
  /// Brings the pages to that node, by the system's number; negative: only asks. statuses[i]: the
  /// node where page i is now, or -errno. Fails as a whole if the system refuses the call.
  virtual Result<> move(std::span<void* const> pages, int node,
                        std::span<int> statuses) noexcept = 0;

 protected:
  ~Pages() = default;
};
/// move_pages(2).
[[nodiscard]] Pages& system_pages() noexcept;

class MemoryMover {
 public:
  /// Of one call, which holds up the worker that makes it: about a millisecond.
  static constexpr std::size_t kChunkPages = 256;

  MemoryMover(const topology::Topology& topology, Pages& pages) noexcept
      : topology_{topology}, pages_{pages} {}

  /// [base, base + bytes) belongs to the entity, until forget(). OUT_OF_MEMORY.
  Result<> own(const Entity& entity, void* base, std::size_t bytes) noexcept;
  void forget(const Entity& entity) noexcept;
  /// Where its pages are now, those that were never touched nowhere. Takes a call for every
  /// kChunkPages; empty where the system does not tell.
  [[nodiscard]] MemoryMap measure(const Entity& entity) const noexcept;

  /// All that it owns shall come to that node of the topology. Takes no time.
  void order(const Entity& entity, std::uint32_t node) noexcept;
  /// Carries out a part of some order. False: there is none. By who has nothing else to do.
  bool serve() noexcept;

  // Relaxed: for reports and tests.
  std::atomic<std::uint64_t> moved_pages{0};
  std::atomic<std::uint64_t> refused_pages{0};

 private:
  struct Area {
    const Entity* owner;
    std::uintptr_t first;  // Whole pages, by number, [first, last).
    std::uintptr_t last;
    std::uintptr_t next;  // Of the order; last: none.
    std::uint32_t node;
  };
  struct Chunk {
    std::uintptr_t first = 0;
    std::size_t count = 0;
    std::uint32_t node = 0;
  };
  [[nodiscard]] Chunk take_chunk() noexcept;
  [[nodiscard]] int system_node(std::uint32_t node) const noexcept;
  [[nodiscard]] std::uint32_t node_of_system(int node) const noexcept;

  const topology::Topology& topology_;
  Pages& pages_;
  mutable SpinLock lock_;
  std::vector<Area> areas_;              // Guard: lock_.
  std::atomic<bool> has_orders_{false};  // Written under lock_; relaxed: a hint.
};

}  // namespace sterna::sched
