// See pages.h.
#include "sched/pages.h"

#include <algorithm>
#include <array>
#include <new>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna::sched {
namespace {

constexpr std::uintptr_t kPageBytes = 4096;
constexpr int kMove = 2;  // MPOL_MF_MOVE: pages that this process alone has mapped.

class SystemPages final : public Pages {
 public:
  Result<> move(std::span<void* const> pages, int node, std::span<int> statuses) noexcept override {
    std::array<int, MemoryMover::kChunkPages> nodes;
    nodes.fill(node);
    const long result = ::syscall(SYS_move_pages, 0, pages.size(), pages.data(),
                                  node < 0 ? nullptr : nodes.data(), statuses.data(), kMove);
    // Positive: so many pages were not moved; their statuses say why.
    return result < 0 ? Result<>{system_error("move_pages", last_error_number())}
                      : Result<>{Done{}};
  }
};

}  // namespace

Pages& system_pages() noexcept {
  static SystemPages pages;
  return pages;
}

Result<> MemoryMover::own(const Entity& entity, void* base, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t first = (begin + kPageBytes - 1) / kPageBytes;
  const std::uintptr_t last = std::max(first, (begin + bytes) / kPageBytes);
  try {
    const SpinGuard guard{lock_};
    areas_.push_back({.owner = &entity, .first = first, .last = last, .next = last, .node = 0});
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return Done{};
}

void MemoryMover::forget(const Entity& entity) noexcept {
  const SpinGuard guard{lock_};
  std::erase_if(areas_, [&](const Area& area) { return area.owner == &entity; });
}

void MemoryMover::order(const Entity& entity, std::uint32_t node) noexcept {
  const SpinGuard guard{lock_};
  for (Area& area : areas_) {
    if (area.owner == &entity) {
      area.node = node;
      area.next = area.first;
      has_orders_.store(true, std::memory_order_relaxed);
    }
  }
}

MemoryMover::Chunk MemoryMover::take_chunk() noexcept {
  const SpinGuard guard{lock_};
  for (Area& area : areas_) {
    if (area.next != area.last) {
      const Chunk chunk{.first = area.next,
                        .count = std::min<std::size_t>(area.last - area.next, kChunkPages),
                        .node = area.node};
      area.next += chunk.count;
      return chunk;
    }
  }
  has_orders_.store(false, std::memory_order_relaxed);
  return {};
}

bool MemoryMover::serve() noexcept {
  if (!has_orders_.load(std::memory_order_relaxed)) {
    return false;
  }
  const Chunk chunk = take_chunk();
  if (chunk.count == 0) {
    return false;
  }
  std::array<void*, kChunkPages> pages;
  std::array<int, kChunkPages> statuses;
  for (std::size_t i = 0; i < chunk.count; ++i) {
    pages[i] = reinterpret_cast<void*>((chunk.first + i) * kPageBytes);
  }
  const int node = system_node(chunk.node);
  const Result<> moved = pages_.move(std::span{pages}.first(chunk.count), node,
                                     std::span{statuses}.first(chunk.count));
  const auto arrived = static_cast<std::uint64_t>(
      moved ? std::count(statuses.begin(), statuses.begin() + static_cast<long>(chunk.count), node)
            : 0);
  moved_pages.fetch_add(arrived, std::memory_order_relaxed);
  refused_pages.fetch_add(chunk.count - arrived, std::memory_order_relaxed);
  return true;
}

MemoryMap MemoryMover::measure(const Entity& entity) const noexcept {
  MemoryMap map;
  for (std::size_t index = 0;; ++index) {
    Area area{};
    {
      const SpinGuard guard{lock_};
      while (index < areas_.size() && areas_[index].owner != &entity) {
        ++index;
      }
      if (index >= areas_.size()) {
        return map;
      }
      area = areas_[index];
    }
    for (std::uintptr_t at = area.first; at < area.last; at += kChunkPages) {
      const std::size_t count = std::min<std::size_t>(area.last - at, kChunkPages);
      std::array<void*, kChunkPages> pages;
      std::array<int, kChunkPages> statuses;
      for (std::size_t i = 0; i < count; ++i) {
        pages[i] = reinterpret_cast<void*>((at + i) * kPageBytes);
      }
      if (!pages_.move(std::span{pages}.first(count), -1, std::span{statuses}.first(count))) {
        return {};
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (statuses[i] >= 0) {
          map.add(node_of_system(statuses[i]), kPageBytes);
        }
      }
    }
  }
}

int MemoryMover::system_node(std::uint32_t node) const noexcept {
  const topology::Place* const place = topology_.find(topology::PlaceKind::numa, node);
  return place != nullptr ? static_cast<int>(place->os_index) : 0;  // A machine without: its only.
}

std::uint32_t MemoryMover::node_of_system(int node) const noexcept {
  for (const topology::Place* const place : topology_.places()) {
    if (place->kind == topology::PlaceKind::numa &&
        place->os_index == static_cast<unsigned>(node)) {
      return place->index;
    }
  }
  return 0;
}

}  // namespace sterna::sched
