// A heap whose pages are on given memory nodes (NUMA), whoever touches them first: a region with a
// policy of its own (mbind), and a locked Heap in it, so that small blocks cost no system call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "memory/heap.h"

namespace sterna::memory {

class NodeHeap {
 public:
  /// On that node, while it has room; on several, page by page in turn. None, or a system that
  /// knows no nodes: as the system places them.
  [[nodiscard]] static Result<std::unique_ptr<NodeHeap>> open(
      std::span<const std::uint32_t> nodes) noexcept;
  /// All of its blocks are gone with it.
  ~NodeHeap();
  NodeHeap(const NodeHeap&) = delete;
  NodeHeap& operator=(const NodeHeap&) = delete;

  /// Any kernel thread may use it.
  [[nodiscard]] Heap& heap() const noexcept { return *heap_; }
  /// The system has taken the policy.
  [[nodiscard]] bool is_bound() const noexcept { return is_bound_; }

 private:
  NodeHeap() = default;

  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  Heap* heap_ = nullptr;
  bool is_bound_ = false;
};

}  // namespace sterna::memory
