// Which links are cut, for tests that have their nodes in one process: Bootstrap::links() gives it
// to the decorator `cut`, which looks at each poll.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace sterna::net {

/// Links have two directions: cut() and restore() change both. Any thread.
class LinkSwitch {
 public:
  explicit LinkSwitch(std::uint32_t node_count)
      : node_count_{node_count}, cut_(node_count * node_count) {}

  void cut(std::uint32_t node, std::uint32_t other) noexcept { set(node, other, true); }
  void restore(std::uint32_t node, std::uint32_t other) noexcept { set(node, other, false); }
  [[nodiscard]] bool is_cut(std::uint32_t from, std::uint32_t to) const noexcept {
    return cut_[from * node_count_ + to].load(std::memory_order_acquire);
  }

 private:
  void set(std::uint32_t node, std::uint32_t other, bool is_cut) noexcept {
    cut_[node * node_count_ + other].store(is_cut, std::memory_order_release);
    cut_[other * node_count_ + node].store(is_cut, std::memory_order_release);
  }
  const std::uint32_t node_count_;
  std::vector<std::atomic<bool>> cut_;  // By node and node. Nothing else is ordered by it.
};

}  // namespace sterna::net
