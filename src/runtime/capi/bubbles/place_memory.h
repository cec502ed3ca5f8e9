// The memory that belongs to places of the machine, of a C program: place.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/node_heap.h"
#include "threads/sync/mutex.h"
#include "topology/level_memory.h"

namespace sterna::runtime::capi {

/// Made when somebody first asks: it reads files of the system. May throw bad_alloc, as its calls.
class PlaceMemory {
 public:
  explicit PlaceMemory(const topology::Topology& topology);

  [[nodiscard]] const topology::LevelMemory& levels() const noexcept { return levels_; }
  /// The memory nodes whose pages a heap there would have; none: there is no choice.
  [[nodiscard]] std::vector<std::uint32_t> numbers_of(const topology::Place& place) const;
  /// One for all places of the same nodes. Null: no addresses, with a text. May switch.
  [[nodiscard]] memory::NodeHeap* heap_at(const topology::Place& place);
  /// Null: it is no block of ours. May switch.
  [[nodiscard]] memory::Heap* heap_of(const void* memory);

 private:
  struct Own {
    std::vector<std::uint32_t> numbers;
    std::unique_ptr<memory::NodeHeap> heap;
  };

  const topology::Topology& topology_;
  const topology::LevelMemory levels_;
  // By place. Released by who made the heap, or found it.
  std::unique_ptr<std::atomic<memory::NodeHeap*>[]> of_place_;
  threads::Mutex mutex_;
  std::vector<std::unique_ptr<Own>> heaps_;  // Guard: mutex_. Only grows.
};

}  // namespace sterna::runtime::capi
