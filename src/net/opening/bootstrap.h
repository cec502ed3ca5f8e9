// What a node knows when it starts, before there is a network: who it is, who the others are, and a
// slow way to exchange a few bytes with all of them.
//
// The launcher's side implements it (runtime/), tests have their own. Everything but exchange() is
// constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sterna::net {

inline constexpr std::size_t kSecretBytes = 32;

/// The job as every node sees it (the same in all of them, but node_index).
struct JobMap {
  std::uint32_t node_index = 0;
  std::uint32_t node_count = 1;
  std::uint32_t rank_count = 1;
  std::uint64_t job_id = 0;
  std::array<std::byte, kSecretBytes> secret{};  // Proven on every connection, never sent.
  std::vector<std::uint32_t> node_of_rank;       // Initial placement; its size is rank_count.
  std::vector<std::string> host_of_node;  // Identity of the host: equal strings share memory.
};

/// What the nodes of one host inherit from the launcher.
struct HostShare {
  int segment_fd = -1;  // A memfd for the drivers' segments, all zero at start; -1: none.
  std::uint64_t segment_bytes = 0;
  std::vector<std::uint32_t> nodes;  // The nodes of this host, ascending; this node is among them.
  std::vector<int> bell_fds;         // One eventfd for each of `nodes`, in the same order.
};

class LinkSwitch;

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual const JobMap& job() const noexcept = 0;
  [[nodiscard]] virtual const HostShare& host() const noexcept = 0;

  /// For tests: who cuts the links of decorator `cut`; null: nobody.
  [[nodiscard]] virtual const LinkSwitch* links() const noexcept { return nullptr; }

  /// Gives `blob` to all nodes, and returns those of all nodes, by node index. Every node calls it
  /// the same number of times, in the same order; it blocks, so at start-up only. Fails with closed
  /// when a node has gone, timed_out when one does not come.
  virtual Result<std::vector<std::vector<std::byte>>> exchange(
      std::span<const std::byte> blob) noexcept = 0;
};

}  // namespace sterna::net
