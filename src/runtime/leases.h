// Where a node gets more addresses for stacks: node 0 counts, the others ask it.
#pragma once

#include <array>
#include <atomic>

#include "memory/iso_space.h"
#include "rpc/rpc.h"

namespace sterna::runtime {

class Leases final : public memory::LeaseSource {
 public:
  explicit Leases(std::uint32_t node_index, std::uint32_t node_count) noexcept;

  /// Registers the services; before the first poll. Both outlive the object.
  void connect(rpc::Rpc& rpc, memory::IsoSpace& space);

  /// Switches, or waits, until node 0 has answered.
  [[nodiscard]] Result<std::uint32_t> lease(std::uint32_t stack_class) noexcept override;
  [[nodiscard]] bool is_slow() const noexcept override { return node_index_ != 0; }
  bool lease_ahead(std::uint32_t stack_class) noexcept override;

  /// The process of `node` has ended. By the poller, before Rpc::lose_peer.
  void lose_peer(std::uint32_t node) noexcept;

 private:
  static Result<rpc::Bytes> on_lease_ahead(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_leased(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_lease(void* self, const rpc::Request& request);
  [[nodiscard]] Result<std::uint32_t> next(std::uint32_t stack_class) noexcept;

  const std::uint32_t node_index_;
  rpc::Rpc* rpc_ = nullptr;  // Constant after connect(), as the next one.
  memory::IsoSpace* space_ = nullptr;
  // Node 0 has ended. Relaxed: who misses it has asked before forget_asked_ranges().
  std::atomic<bool> is_lost_{false};
  // Node 0: the next free range of each class. The first node_count ranges are what nodes start
  // with.
  std::array<std::atomic<std::uint32_t>, memory::kStackClassCount> next_;
};

}  // namespace sterna::runtime
