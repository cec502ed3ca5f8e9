// place.h: what the places of the machine are, and memory from there.
#include <algorithm>
#include <cstring>
#include <list>
#include <span>
#include <string>

#include <sterna/place.h>

#include "runtime/capi/bubbles/place_memory.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {

PlaceMemory::PlaceMemory(const topology::Topology& topology)
    : topology_{topology},
      levels_{topology::LevelMemory::read(topology)},
      of_place_{std::make_unique<std::atomic<memory::NodeHeap*>[]>(topology.places().size())} {}

std::vector<std::uint32_t> PlaceMemory::numbers_of(const topology::Place& place) const {
  std::vector<std::uint32_t> numbers;
  if (levels_.nodes().size() > 1) {  // Else the system has no choice, and nothing is to be said.
    for (const topology::MemoryNode& node : levels_.nodes_of(place)) {
      numbers.push_back(node.number);
    }
  }
  return numbers;
}

memory::NodeHeap* PlaceMemory::heap_at(const topology::Place& place) {
  std::atomic<memory::NodeHeap*>& known = of_place_[place.id];
  // Acquire: of who made it, who released it here.
  if (memory::NodeHeap* const heap = known.load(std::memory_order_acquire); heap != nullptr) {
    return heap;
  }
  const std::vector<std::uint32_t> numbers = numbers_of(place);
  memory::NodeHeap* heap = nullptr;
  {
    const SpinGuard guard{lock_};
    heap = find_heap(numbers);
  }
  if (heap == nullptr) {
    auto opened = memory::NodeHeap::open(numbers);
    if (!opened) {
      keep_detail(opened.error().text);
      return nullptr;
    }
    std::list<Own> made;  // Perhaps in vain: another one comes first.
    made.push_back({numbers, std::move(opened.value())});
    const SpinGuard guard{lock_};
    heap = find_heap(numbers);
    if (heap == nullptr) {
      heap = made.front().heap.get();
      heaps_.splice(heaps_.end(), made);
    }
  }
  known.store(heap, std::memory_order_release);
  return heap;
}

memory::NodeHeap* PlaceMemory::find_heap(std::span<const std::uint32_t> numbers) noexcept {
  for (const Own& own : heaps_) {
    if (std::ranges::equal(own.numbers, numbers)) {
      return own.heap.get();
    }
  }
  return nullptr;
}

memory::Heap* PlaceMemory::heap_of(const void* memory) noexcept {
  const SpinGuard guard{lock_};
  for (const Own& own : heaps_) {
    if (own.heap->heap().contains(memory)) {
      return &own.heap->heap();
    }
  }
  return nullptr;
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
namespace topology = sterna::topology;
using sterna::runtime::RuntimeScope;

namespace {

/// Null: it cannot be made, with a text.
capi::PlaceMemory* memory_of(capi::Program& program) noexcept {
  // Acquire: of who made it, who released it here.
  capi::PlaceMemory* found = program.place_memory.load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  (void)capi::guarded([&] {
    auto made = std::make_unique<capi::PlaceMemory>(*program.topology);
    if (program.place_memory.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel,
                                                     std::memory_order_acquire)) {
      found = made.release();
    }
    return STERNA_SUCCESS;
  });
  return found;
}

/// Null: refused, with a text.
const topology::Place* find_place(const capi::Program& program, const char* text) noexcept {
  if (text != nullptr) {
    return capi::place_named(text);
  }
  const sterna::threads::Worker* const worker = sterna::threads::this_worker();
  return worker != nullptr ? program.worker_places[sterna::threads::worker_index(*worker)]
                           : &program.topology->root();
}

void fill(capi::Program& program, capi::PlaceMemory& memory, const topology::Place& place,
          sterna_place_info& info) {
  info = {};
  info.size_bytes = sizeof info;
  const std::string name = std::string{to_string(place.kind)} + ":" + std::to_string(place.index);
  std::copy_n(name.begin(), std::min(name.size(), sizeof info.name - 1), info.name);
  info.depth = place.depth;
  info.processors = place.pu_count;
  info.os_index = place.os_index;
  info.workers = static_cast<std::uint32_t>(std::ranges::count_if(
      program.worker_places,
      [&](const topology::Place* pu) { return &topology::common_ancestor(*pu, place) == &place; }));
  for (std::uint32_t level = 1; level <= topology::LevelMemory::kCacheLevels; ++level) {
    if (const topology::Cache* const cache = memory.levels().cache_of(place, level)) {
      info.cache_bytes[level - 1] = cache->bytes;
      info.cache_processors[level - 1] = cache->cpus.count();
    }
  }
  const auto nodes = memory.levels().nodes_of(place);
  info.memory_nodes = static_cast<std::uint32_t>(nodes.size());
  for (const topology::MemoryNode& node : nodes) {
    info.memory_bytes += node.bytes;
  }
  info.memory_node = nodes.size() == 1 ? nodes.front().number : UINT32_MAX;
  if (!memory.numbers_of(place).empty()) {
    const auto* const heap = memory.heap_at(place);
    info.is_bound = heap != nullptr && heap->is_bound() ? 1 : 0;
  }
}

sterna_status refuse_memory(std::size_t bytes) noexcept {
  return capi::refuse(STERNA_OUT_OF_MEMORY, "there is no memory for {} bytes", bytes);
}

/// The `bytes` bytes of allocate(heap), at that place; null with a text.
template <typename Allocate>
void* allocate_at(const char* place, std::size_t bytes, Allocate allocate) noexcept {
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    (void)capi::refuse(capi::why_no_program(),
                       "there are no places before sterna_start, nor in "
                       "mobile ranks");
    return nullptr;
  }
  capi::PlaceMemory* const memory = memory_of(*program);
  const topology::Place* const found = memory != nullptr ? find_place(*program, place) : nullptr;
  void* block = nullptr;
  if (found != nullptr) {
    (void)capi::guarded([&] {
      sterna::memory::NodeHeap* const heap = memory->heap_at(*found);
      if (heap != nullptr) {
        block = allocate(heap->heap());
        if (block == nullptr) {
          (void)refuse_memory(bytes);
        }
      }
      return STERNA_SUCCESS;
    });
  }
  return block;
}

}  // namespace

sterna_status sterna_place_query(const char* place, sterna_place_info* info) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (place == nullptr || info == nullptr || info->size_bytes != sizeof *info) {
    return capi::refuse_argument(__func__);
  }
  capi::PlaceMemory* const memory = memory_of(*program);
  if (memory == nullptr) {
    return STERNA_OUT_OF_MEMORY;
  }
  const topology::Place* const found = capi::place_named(place);
  if (found == nullptr) {
    return STERNA_NOT_FOUND;
  }
  return capi::guarded([&] {
    fill(*program, *memory, *found, *info);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_place_list(sterna_place_info* infos, size_t capacity, size_t* count) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (count == nullptr ||
      (capacity != 0 && (infos == nullptr || infos[0].size_bytes != sizeof *infos))) {
    return capi::refuse_argument(__func__);
  }
  capi::PlaceMemory* const memory = memory_of(*program);
  if (memory == nullptr) {
    return STERNA_OUT_OF_MEMORY;
  }
  return capi::guarded([&] {
    const auto places = program->topology->places();
    *count = places.size();
    for (std::size_t i = 0; i < std::min(capacity, places.size()); ++i) {
      fill(*program, *memory, *places[i], infos[i]);
    }
    return STERNA_SUCCESS;
  });
}

void* sterna_malloc_at(const char* place, size_t bytes) noexcept {
  const RuntimeScope scope;
  return allocate_at(place, bytes,
                     [&](sterna::memory::Heap& heap) { return heap.allocate(bytes); });
}

void* sterna_calloc_at(const char* place, size_t count, size_t bytes) noexcept {
  const RuntimeScope scope;
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    (void)capi::refuse(STERNA_OUT_OF_MEMORY, "{} times {} bytes are more than there are addresses",
                       count, bytes);
    return nullptr;
  }
  return allocate_at(place, all,
                     [&](sterna::memory::Heap& heap) { return heap.allocate_zeroed(all); });
}

void* sterna_realloc_at(void* memory, size_t bytes) noexcept {
  const RuntimeScope scope;
  if (memory == nullptr) {
    return allocate_at(nullptr, bytes,
                       [&](sterna::memory::Heap& heap) { return heap.allocate(bytes); });
  }
  capi::Program* const program = capi::program();
  capi::PlaceMemory* const its = program != nullptr ? memory_of(*program) : nullptr;
  sterna::memory::Heap* const heap = its != nullptr ? its->heap_of(memory) : nullptr;
  if (heap == nullptr) {
    (void)capi::refuse(STERNA_INVALID_ARGUMENT, "{} is no memory of sterna_malloc_at", memory);
    return nullptr;
  }
  void* const moved = heap->reallocate(memory, bytes);
  if (moved == nullptr) {
    (void)refuse_memory(bytes);
  }
  return moved;
}

sterna_status sterna_free_at(void* memory) noexcept {
  const RuntimeScope scope;
  if (memory == nullptr) {
    return STERNA_SUCCESS;
  }
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  capi::PlaceMemory* const its = memory_of(*program);
  sterna::memory::Heap* const heap = its != nullptr ? its->heap_of(memory) : nullptr;
  if (heap == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{} is no memory of sterna_malloc_at", memory);
  }
  heap->deallocate(memory);
  return STERNA_SUCCESS;
}
