// Builds the tree of places from hwloc or from a set of processors.
#include "topology/topology.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <hwloc.h>

#include "base/check.h"
#include "base/syscall.h"
#include "topology/description.h"

namespace sterna::topology {

namespace {

constexpr std::array<std::string_view, 9> kKindNames{
    "network", "machine", "package", "numa", "group", "l3", "l2", "core", "pu"};
constexpr std::uint32_t kMachinesMax = 4096;
constexpr std::uint32_t kArityMax = 65'536;

struct HwlocDeleter {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Hwloc = std::unique_ptr<hwloc_topology, HwlocDeleter>;

CpuSet to_cpus(hwloc_const_cpuset_t set) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.add(static_cast<std::uint32_t>(cpu));
  }
  return cpus;
}

// A level that we show. Those without a word of their own here, dies and caches that are neither L2
// nor L3, are groups: load() keeps them where they divide what is around them. A NUMA node hangs
// beside the tree in hwloc, at the object whose processors it serves: a group made for it alone
// becomes the numa level.
std::optional<PlaceKind> kind_of(hwloc_obj_t object) noexcept {
  switch (object->type) {
    case HWLOC_OBJ_MACHINE:
      return PlaceKind::machine;
    case HWLOC_OBJ_PACKAGE:
      return PlaceKind::package;
    case HWLOC_OBJ_GROUP:
      return object->memory_arity > 0 ? PlaceKind::numa : PlaceKind::group;
    case HWLOC_OBJ_DIE:
    case HWLOC_OBJ_L1CACHE:
    case HWLOC_OBJ_L4CACHE:
    case HWLOC_OBJ_L5CACHE:
      return PlaceKind::group;
    case HWLOC_OBJ_L3CACHE:
      return PlaceKind::l3;
    case HWLOC_OBJ_L2CACHE:
      return PlaceKind::l2;
    case HWLOC_OBJ_CORE:
      return PlaceKind::core;
    case HWLOC_OBJ_PU:
      return PlaceKind::pu;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Adds places from the outside to the inside, then links and counts them.
class Builder {
 public:
  explicit Builder(std::uint32_t arity_max) : topology_{new Topology}, arity_max_{arity_max} {}

  Place& add(PlaceKind kind, const Place* parent, std::uint32_t os_index, CpuSet cpus) {
    auto place = std::make_unique<Place>();
    place->kind = kind;
    place->id = static_cast<std::uint32_t>(topology_->owned_.size());
    place->index = topology_->count(kind);
    place->os_index = os_index;
    place->parent = parent;
    place->cpus = std::move(cpus);
    if (parent != nullptr) {
      place->depth = parent->depth + 1;
      place->child_index = static_cast<std::uint32_t>(topology_->children_[parent->id].size());
      topology_->children_[parent->id].push_back(place.get());
    }
    topology_->children_.emplace_back();
    if (topology_->levels_.size() <= place->depth) {
      topology_->levels_.resize(place->depth + 1);
    }
    topology_->levels_[place->depth].push_back(place.get());
    topology_->places_.push_back(place.get());
    topology_->owned_.push_back(std::move(place));
    return *topology_->owned_.back();
  }

  // Depth first; `parent` is the nearest shown ancestor.
  void add_tree(hwloc_obj_t object, const Place* parent) {
    const std::optional<PlaceKind> kind = kind_of(object);
    Place* own = nullptr;
    if (kind) {
      own = &add(*kind, parent, numa_or_own_index(object), to_cpus(object->cpuset));
      own->pu_first = topology_->pu_count();
      if (*kind == PlaceKind::pu) {
        topology_->pus_.push_back(own);
      } else if (*kind != PlaceKind::numa && serves_one_of_several(object)) {
        // A package or cache with a memory of its own: the numa level is inside it.
        add_numa(object, *own);
        return;
      }
    }
    add_children(object, own != nullptr ? own : parent);
    if (own != nullptr) {
      own->pu_count = topology_->pu_count() - own->pu_first;
    }
  }

  /// Machines that are all as this one.
  void add_network(hwloc_obj_t machine, std::uint32_t count) {
    Place& network = add(PlaceKind::network, nullptr, Place::kNone, {});
    const std::vector<hwloc_obj_t> machines(count, machine);
    add_grouped(machines, &network);
    network.pu_count = topology_->pu_count();
  }

  std::unique_ptr<Topology> finish(bool is_synthetic) {
    topology_->is_synthetic_ = is_synthetic;
    for (const std::unique_ptr<Place>& place : topology_->owned_) {
      place->children = topology_->children_[place->id];
    }
    check(topology_->pu_count() > 0, "a machine has a processor");
    return std::move(topology_);
  }

  void add_pu(const Place& parent, std::uint32_t cpu) {
    Place& pu = add(PlaceKind::pu, &parent, cpu, CpuSet{cpu});
    pu.pu_first = topology_->pu_count();
    pu.pu_count = 1;
    topology_->pus_.push_back(&pu);
  }

 private:
  static bool serves_one_of_several(hwloc_obj_t object) noexcept {
    return object->memory_arity > 0 && object->type != HWLOC_OBJ_MACHINE;
  }
  static std::uint32_t numa_or_own_index(hwloc_obj_t object) noexcept {
    const bool is_numa = object->type == HWLOC_OBJ_GROUP && object->memory_arity > 0;
    return is_numa ? object->memory_first_child->os_index : object->os_index;
  }
  void add_numa(hwloc_obj_t object, Place& own) {
    Place& numa =
        add(PlaceKind::numa, &own, object->memory_first_child->os_index, to_cpus(object->cpuset));
    numa.pu_first = own.pu_first;
    add_children(object, &numa);
    numa.pu_count = own.pu_count = topology_->pu_count() - own.pu_first;
  }
  void add_children(hwloc_obj_t object, const Place* parent) {
    std::vector<hwloc_obj_t> shown;
    list_shown(object, shown);
    add_grouped(shown, parent);
  }
  /// The nearest shown objects below one.
  static void list_shown(hwloc_obj_t object, std::vector<hwloc_obj_t>& shown) {
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling) {
      if (kind_of(child)) {
        shown.push_back(child);
      } else {
        list_shown(child, shown);
      }
    }
  }
  /// As few levels of groups as do, all of them full but for one object.
  void add_grouped(std::span<const hwloc_obj_t> objects, const Place* parent) {
    const std::size_t count = objects.size();
    if (arity_max_ < 2 || count <= arity_max_) {
      for (hwloc_obj_t const object : objects) {
        add_tree(object, parent);
      }
      return;
    }
    std::size_t capacity = arity_max_;  // Of one of the groups.
    while (capacity * arity_max_ < count) {
      capacity *= arity_max_;
    }
    const std::size_t groups = (count + capacity - 1) / capacity;
    for (std::size_t i = 0; i < groups; ++i) {
      const auto inside =
          objects.subspan(i * count / groups, (i + 1) * count / groups - i * count / groups);
      CpuSet cpus;
      for (hwloc_obj_t const object : inside) {
        cpus.add(to_cpus(object->cpuset));
      }
      Place& group = add(PlaceKind::group, parent, Place::kNone, std::move(cpus));
      group.pu_first = topology_->pu_count();
      add_grouped(inside, &group);
      group.pu_count = topology_->pu_count() - group.pu_first;
    }
  }

  std::unique_ptr<Topology> topology_;
  const std::uint32_t arity_max_;
};

namespace {

Result<std::unique_ptr<Topology>> load(Hwloc hwloc, const TopologyOptions& options,
                                       bool is_synthetic) {
  // Caches of instructions, devices and levels that add nothing are left out while loading: they
  // take most of the time.
  hwloc_topology_set_all_types_filter(hwloc.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    hwloc_topology_set_type_filter(
        hwloc.get(), type,
        is_synthetic ? HWLOC_TYPE_FILTER_KEEP_ALL : HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  }
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_GROUP, HWLOC_OBJ_DIE, HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    hwloc_topology_set_type_filter(hwloc.get(), type, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  }
  if (hwloc_topology_load(hwloc.get()) != 0) {
    return system_error("hwloc cannot read the machine", last_error_number());
  }
  if (!is_synthetic) {
    // What taskset leaves us; cgroups hwloc knows itself.
    Result<CpuSet> own = current_thread_cpus();
    if (!own) {
      return own.error();
    }
    const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> set{hwloc_bitmap_alloc(),
                                                                        hwloc_bitmap_free};
    for (const std::uint32_t cpu : own.value().list()) {
      hwloc_bitmap_set(set.get(), cpu);
    }
    if (hwloc_topology_restrict(hwloc.get(), set.get(), 0) != 0) {
      return system_error("hwloc cannot restrict the machine to the processors of this process",
                          last_error_number());
    }
  }
  Builder builder{options.arity_max};
  if (options.machine_count == 0) {
    builder.add_tree(hwloc_get_root_obj(hwloc.get()), nullptr);
    return builder.finish(is_synthetic);
  }
  builder.add_network(hwloc_get_root_obj(hwloc.get()), options.machine_count);
  return builder.finish(true);
}

Result<Hwloc> new_hwloc() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return Errc::out_of_memory;
  }
  return Hwloc{topology};
}

}  // namespace

Result<std::unique_ptr<Topology>> Topology::detect(const TopologyOptions& options) {
  Result<Hwloc> hwloc = new_hwloc();
  if (!hwloc) {
    return hwloc.error();
  }
  return load(std::move(hwloc.value()), options, false);
}

Result<std::unique_ptr<Topology>> Topology::synthetic(const std::string& description) {
  Result<Hwloc> hwloc = new_hwloc();
  if (!hwloc) {
    return hwloc.error();
  }
  TopologyOptions options;
  std::string_view machine = description;
  if (!take_option(machine, "network:", kMachinesMax, options.machine_count) ||
      !take_option(machine, "arity:", kArityMax, options.arity_max) || machine.empty() ||
      hwloc_topology_set_synthetic(hwloc.value().get(), std::string{machine}.c_str()) != 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" does not describe a machine; write levels from the outside to "
                             "the inside, for example \"node:2 core:4 pu:2\", before them "
                             "\"network:N\" for N such machines, then \"arity:N\" for groups of N",
                             description)};
  }
  const std::uint64_t processors = processors_of(machine);
  if (processors > kSyntheticMax || processors * options.machine_count > kNetworkMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" has too many processors: {} a machine are the most, and {} of "
                             "all machines; give a level fewer",
                             description, kSyntheticMax, kNetworkMax)};
  }
  return load(std::move(hwloc.value()), options, true);
}

Result<std::unique_ptr<Topology>> Topology::flat() {
  Result<CpuSet> cpus = current_thread_cpus();
  if (!cpus) {
    return cpus.error();
  }
  Builder builder{0};
  Place& machine = builder.add(PlaceKind::machine, nullptr, 0, cpus.value());
  machine.pu_count = cpus.value().count();
  for (const std::uint32_t cpu : cpus.value().list()) {
    builder.add_pu(machine, cpu);
  }
  return builder.finish(false);
}

Topology::~Topology() = default;

std::string_view to_string(PlaceKind kind) noexcept {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::span<const Place* const> Topology::level(std::uint32_t depth) const noexcept {
  check(depth < levels_.size(), "a level of the machine is asked for");
  return levels_[depth];
}

std::uint32_t Topology::count(PlaceKind kind) const noexcept {
  std::uint32_t total = 0;
  for (const Place* place : places_) {
    total += place->kind == kind ? 1 : 0;
  }
  return total;
}

const Place* Topology::find(PlaceKind kind, std::uint32_t index) const noexcept {
  for (const Place* place : places_) {
    if (place->kind == kind && place->index == index) {
      return place;
    }
  }
  return nullptr;
}

std::vector<const Place*> Topology::share(Share share) const {
  check(share.node_index < share.node_count, "a share is one of those that there are");
  const std::uint64_t count = pus_.size();
  if (share.node_count >= count) {
    return {pus_[share.node_index * count / share.node_count]};
  }
  const std::uint64_t first = share.node_index * count / share.node_count;
  const std::uint64_t last = (share.node_index + std::uint64_t{1}) * count / share.node_count;
  return {pus_.begin() + static_cast<std::ptrdiff_t>(first),
          pus_.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::string Topology::text() const {
  std::string text;
  for (const Place* place : places_) {
    text += fmt::format("{:{}}{} {}", "", place->depth * 2, to_string(place->kind), place->index);
    text += place->kind == PlaceKind::pu ? fmt::format(" (processor {})\n", place->os_index)
            : place->kind == PlaceKind::network
                ? fmt::format(" [{} machines]\n", count(PlaceKind::machine))
                : fmt::format(" [{}]\n", place->cpus.text());
  }
  return text;
}

const Place& common_ancestor(const Place& a, const Place& b) noexcept {
  const Place* first = &a;
  const Place* second = &b;
  while (first != second) {
    const Place*& lower = first->depth >= second->depth ? first : second;
    lower = lower->parent;
    check(lower != nullptr, "both places are of one machine");
  }
  return *first;
}

std::uint32_t distance(const Place& a, const Place& b) noexcept {
  const std::uint32_t depth = a.depth > b.depth ? a.depth : b.depth;
  return depth - common_ancestor(a, b).depth;
}

const Place* enclosing(const Place& place, PlaceKind kind) noexcept {
  const Place* found = &place;
  while (found != nullptr && found->kind != kind) {
    found = found->parent;
  }
  return found;
}

}  // namespace sterna::topology
