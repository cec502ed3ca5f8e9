// What a node holds now, asked for by name from anywhere in the job.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "migration/residents.h"
#include "rpc/rpc.h"

namespace sterna::runtime {

/// Ranks that are here and not leaving; workers; processor time of the process since its start.
struct NodeLoad {
  std::uint32_t ranks = 0;
  std::uint32_t workers = 0;
  std::uint64_t processor_ns = 0;
};

inline constexpr std::string_view kNodeLoadService = "node.load";

[[nodiscard]] rpc::Bytes encode(const NodeLoad& load);
/// malformed if it is none.
[[nodiscard]] Result<NodeLoad> decode_node_load(std::span<const std::byte> bytes) noexcept;

/// The service; lives as long as the Rpc it is added to.
class NodeLoadSource {
 public:
  /// `residents` is null where the process is the one rank.
  NodeLoadSource(const threads::Team& team, migration::Residents* residents) noexcept
      : team_{team}, residents_{residents} {}
  /// As Rpc::add_service.
  void add_to(rpc::Rpc& rpc) { rpc.add_service(kNodeLoadService, rpc::RunIn::poll, serve, this); }

 private:
  static Result<rpc::Bytes> serve(void* self, const rpc::Request& request);

  const threads::Team& team_;
  migration::Residents* const residents_;
};

}  // namespace sterna::runtime
