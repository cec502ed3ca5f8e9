// The memory that belongs to places of the machine, of a C program: place.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "memory/node_heap.h"
#include "topology/level_memory.h"

namespace sterna::runtime::capi {

/// Made when somebody first asks: it reads files of the system. May throw bad_alloc, as its calls.
class PlaceMemory {
 public:
  explicit PlaceMemory(const topology::Topology& topology);

  [[nodiscard]] const topology::LevelMemory& levels() const noexcept { return levels_; }
  /// The memory nodes whose pages a heap there would have; none: there is no choice.
  [[nodiscard]] std::vector<std::uint32_t> numbers_of(const topology::Place& place) const;
  /// One for all places of the same nodes. Null: no addresses, with a text.
  [[nodiscard]] memory::NodeHeap* heap_at(const topology::Place& place);
  /// Null: it is no block of ours.
  [[nodiscard]] memory::Heap* heap_of(const void* memory) noexcept;

 private:
  struct Own {
    std::vector<std::uint32_t> numbers;
    std::unique_ptr<memory::NodeHeap> heap;
  };

  [[nodiscard]] memory::NodeHeap* find_heap(std::span<const std::uint32_t> numbers) noexcept
      STERNA_REQUIRES(lock_);

  const topology::Topology& topology_;
  const topology::LevelMemory levels_;
  // By place. Released by who made the heap, or found it.
  std::unique_ptr<std::atomic<memory::NodeHeap*>[]> of_place_;
  // Quick services come here too: who has it neither waits, nor makes memory.
  SpinLock lock_;
  std::list<Own> heaps_ STERNA_GUARDED_BY(lock_);  // Only grows.
};

}  // namespace sterna::runtime::capi
