// Which memory belongs to which level of a machine: caches and NUMA nodes, as the system tells
// (sysfs). Read where somebody asks: no start of a node pays for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/cpuset.h"
#include "topology/topology.h"

namespace sterna::topology {

struct Cache {
  std::uint32_t level = 0;  // 1 to 3; of level 1 that for data.
  std::uint64_t bytes = 0;
  CpuSet cpus;  // Who shares it.
};

struct MemoryNode {
  std::uint32_t number = 0;  // Of the system.
  std::uint64_t bytes = 0;
  CpuSet cpus;  // Whose own it is.
};

class LevelMemory {
 public:
  static constexpr std::uint32_t kCacheLevels = 3;

  /// Of the machine of `topology`, which is a real one; what cannot be read is left out. `root` is
  /// for tests. May throw bad_alloc.
  [[nodiscard]] static LevelMemory read(const Topology& topology,
                                        const std::string& root = "/sys/devices/system");

  [[nodiscard]] std::span<const Cache> caches() const noexcept { return caches_; }
  [[nodiscard]] std::span<const MemoryNode> nodes() const noexcept { return nodes_; }
  /// That serves the first processor of a place; null: none is known.
  [[nodiscard]] const Cache* cache_of(const Place& place, std::uint32_t level) const noexcept;
  /// Whose processors are in the place, or the one that it is in. By number.
  [[nodiscard]] std::vector<MemoryNode> nodes_of(const Place& place) const;

 private:
  std::vector<Cache> caches_;      // Each once.
  std::vector<MemoryNode> nodes_;  // With processors only.
};

/// As Topology::text(), with the caches and the memory after the outermost place to which they
/// belong: "core 0 [0-1] L1 48 KiB, L2 1 MiB".
[[nodiscard]] std::string text_with_memory(const Topology& topology, const LevelMemory& memory);

/// "48 KiB", "23.5 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace sterna::topology
