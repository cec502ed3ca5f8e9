// The machine as a tree of places: the real one (hwloc, within what taskset and cgroups leave us),
// or a synthetic one from a string. Constant once made; any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/cpuset.h"

namespace sterna::topology {

/// From the outside to the inside.
enum class PlaceKind : std::uint8_t {
  network,  // Several machines.
  machine,
  package,
  numa,   // Processors that share a memory.
  group,  // A level without a name in hwloc, or made to divide a wide one: TopologyOptions.
  l3,
  l2,
  core,
  pu,  // A hardware thread: where one worker runs.
};
[[nodiscard]] std::string_view to_string(PlaceKind kind) noexcept;

/// A node of the tree. Places live as long as their Topology and do not move.
struct Place {
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  PlaceKind kind = PlaceKind::machine;
  std::uint32_t id = 0;           // Index in Topology::places(): parents before children.
  std::uint32_t index = 0;        // Among the places of its kind, from left to right.
  std::uint32_t os_index = 0;     // The system's number (of the processor, for a pu), or kNone.
  std::uint32_t depth = 0;        // The root has 0.
  std::uint32_t child_index = 0;  // Among the children of its parent.
  std::uint32_t pu_first = 0;     // Its pus are [pu_first, pu_first + pu_count) of pus().
  std::uint32_t pu_count = 0;
  const Place* parent = nullptr;  // Null for the root.
  std::span<const Place* const> children;
  CpuSet cpus;  // Numbers of the system; of the machine's own below a network, which has none.
};

/// Which processors a node gets, see Topology::share().
struct Share {
  std::uint32_t node_index = 0;
  std::uint32_t node_count = 1;
};

struct TopologyOptions {
  // A place with more children than that gets groups between them and itself, level above level,
  // of sizes that differ by one at most: run queues that fewer processors share. 0: as it is.
  std::uint32_t arity_max = 0;
  // As many machines, all alike, below a place of the kind network. 0: one machine, no network.
  std::uint32_t machine_count = 0;
};

class Topology {
 public:
  /// What hwloc sees, restricted to the processors this process may use. Tens of milliseconds.
  [[nodiscard]] static Result<std::unique_ptr<Topology>> detect(
      const TopologyOptions& options = {});
  /// The same processors without their structure: machine and pus, from sched_getaffinity. About
  /// ten microseconds: for start-ups that need no placement.
  [[nodiscard]] static Result<std::unique_ptr<Topology>> flat();
  /// hwloc's language of synthetic machines, outermost level first: "node:2 core:4 pu:2" (node is
  /// a NUMA node), "package:2 l3:2 core:4 pu:1". Before it may stand "network:N", machine_count,
  /// and "arity:N", arity_max. Cannot be bound to.
  [[nodiscard]] static Result<std::unique_ptr<Topology>> synthetic(const std::string& description);

  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] const Place& root() const noexcept { return *places_.front(); }
  [[nodiscard]] std::span<const Place* const> places() const noexcept { return places_; }
  [[nodiscard]] std::span<const Place* const> pus() const noexcept { return pus_; }
  [[nodiscard]] std::uint32_t pu_count() const noexcept {
    return static_cast<std::uint32_t>(pus_.size());
  }
  /// Places at `depth`, from left to right. The deepest level need not hold all pus (machines
  /// with two kinds of cores).
  [[nodiscard]] std::span<const Place* const> level(std::uint32_t depth) const noexcept;
  [[nodiscard]] std::uint32_t depth_count() const noexcept {
    return static_cast<std::uint32_t>(levels_.size());
  }
  [[nodiscard]] std::uint32_t count(PlaceKind kind) const noexcept;
  /// The index-th place of a kind, null when there is none.
  [[nodiscard]] const Place* find(PlaceKind kind, std::uint32_t index) const noexcept;
  [[nodiscard]] bool is_synthetic() const noexcept { return is_synthetic_; }

  /// The pus of one of `node_count` nodes that share this machine: a contiguous part, sizes differ
  /// by one at most, at least one pu; parts overlap only when there are more nodes than pus.
  [[nodiscard]] std::vector<const Place*> share(Share share) const;

  /// One line a place, indented: what `sterna topo` prints.
  [[nodiscard]] std::string text() const;

 private:
  friend class Builder;
  Topology() = default;

  std::vector<std::unique_ptr<Place>> owned_;
  std::vector<const Place*> places_;
  std::vector<const Place*> pus_;
  std::vector<std::vector<const Place*>> levels_;
  std::vector<std::vector<const Place*>> children_;  // By Place::id.
  bool is_synthetic_ = false;
};

/// Every `stride`-th of `places`, from index `first` on; with a `count` of more than those (0: of
/// just those) the ones between follow, then all again. `first` is below the size, `stride` not 0.
[[nodiscard]] std::vector<const Place*> every_nth(std::span<const Place* const> places,
                                                  std::size_t first, std::size_t stride,
                                                  std::size_t count);

/// The deepest place that contains both, of one Topology.
[[nodiscard]] const Place& common_ancestor(const Place& a, const Place& b) noexcept;
/// Steps up from the lower of both to their common ancestor: 0 for the same place.
[[nodiscard]] std::uint32_t distance(const Place& a, const Place& b) noexcept;
/// The nearest ancestor (or itself) of a kind, null when there is none.
[[nodiscard]] const Place* enclosing(const Place& place, PlaceKind kind) noexcept;

/// Binds the calling kernel thread to processors of the system.
[[nodiscard]] Result<> bind_current_thread(const CpuSet& cpus);
/// The processors that the calling kernel thread may use.
[[nodiscard]] Result<CpuSet> current_thread_cpus();
/// Of another kernel thread, by its number; that of the process: of its initial thread.
[[nodiscard]] Result<CpuSet> cpus_of_thread(int kernel_id);

}  // namespace sterna::topology
