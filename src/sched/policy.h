// What a scheduling policy is: a pure function from a topology and a tree of entities to places.
// The mechanism (scheduler.h) takes the snapshot and commits the plan; a policy sees no thread, no
// queue and no clock, so that it is tested on synthetic machines with nothing running.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sched/entity.h"
#include "topology/topology.h"

namespace sterna::sched {

inline constexpr std::uint32_t kNoParent = 0xffff'ffff;

/// One entity of a snapshot. Parents come before their children.
struct EntityView {
  std::uint32_t parent = kNoParent;  // Index in the snapshot.
  bool is_bubble = false;
  std::uint64_t load = 1;  // Of a bubble: not counting what it holds.
  std::uint32_t program_place = kNoPlace;
};

struct PlanInput {
  const topology::Topology& topology;
  const topology::Place& domain;  // The part of the machine that may be used.
  std::span<const EntityView> entities;
};

/// Writes the id of a place within the domain for each entity, within its program_place if it has
/// one (that lies in the domain). May allocate; called seldom.
using PlanFunction = void (*)(const PlanInput& input, std::span<std::uint32_t> places);

struct PolicyEntry {
  std::string_view name;     // As written in STERNA_POLICY.
  std::string_view summary;  // One line, for `sterna info`.
  PlanFunction plan;
};

/// All policies of this build; see sched/policies/builtin.cc to add one.
[[nodiscard]] std::span<const PolicyEntry* const> builtin_policies() noexcept;
/// Null: no such policy.
[[nodiscard]] const PolicyEntry* find_policy(std::string_view name) noexcept;

}  // namespace sterna::sched
