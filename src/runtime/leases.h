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

  /// Registers the service; before the first poll. `rpc` outlives the object.
  void connect(rpc::Rpc& rpc);

  /// Switches, or waits, until node 0 has answered.
  [[nodiscard]] Result<std::uint32_t> lease(std::uint32_t stack_class) noexcept override;

 private:
  static Result<rpc::Bytes> on_lease(void* self, const rpc::Request& request);
  [[nodiscard]] Result<std::uint32_t> next(std::uint32_t stack_class) noexcept;

  const std::uint32_t node_index_;
  rpc::Rpc* rpc_ = nullptr;  // Constant after connect().
  // Node 0: the next free range of each class. The first node_count ranges are what nodes start
  // with.
  std::array<std::atomic<std::uint32_t>, memory::kStackClassCount> next_;
};

}  // namespace sterna::runtime
