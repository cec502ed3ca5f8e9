// Dividing entities among the parts of a place, from the top of the machine down: what spread,
// cache and memory have in common. Bubbles stay whole as deep in the machine as equal load allows.
#pragma once

#include <memory_resource>
#include <vector>

#include "sched/policy.h"

namespace sterna::sched {

struct DistributionRules {
  // A part may have that much more than its share before bubbles are opened for balance, and before
  // what attracts an entity is overruled. In percent of the share.
  std::uint32_t tolerance_percent = 10;
  // Which child of `place` attracts the entity, or kNoPlace. Null: none does.
  std::uint32_t (*attraction)(const View& view, const Entity& entity,
                              const topology::Place& place) = nullptr;
};

/// At each place, from the domain down: while there are fewer entities than parts, or a part has
/// too much, a bubble bursts into what it holds and remains at this place; the entities go,
/// heaviest first, to the part that attracts them or has the least load per worker.
class Distribution {
 public:
  Distribution(View& view, const DistributionRules& rules) noexcept;

  /// All entities of the policy, over the whole domain.
  void run() noexcept;

 private:
  struct Item {
    Entity* entity;
    std::uint64_t load;  // 0 counts as 1, so that idle threads are spread, too.
    std::uint32_t part;
  };
  using Items = std::pmr::vector<Item>;

  void add(Items& items, Entity& entity);
  void open_into(Items& items, std::size_t index, const topology::Place& place);
  void divide(Items items, const topology::Place& place);
  void settle(const Items& items, const topology::Place& place);
  void open_while_few(Items& items, std::size_t part_count, const topology::Place& place);
  void assign(Items& items, const topology::Place& place);
  [[nodiscard]] std::size_t item_to_open(const Items& items, const topology::Place& place) const;

  View& view_;
  const DistributionRules& rules_;
  std::pmr::memory_resource& memory_;
  std::pmr::vector<Entity*> placed_by_program_;
  std::pmr::vector<const topology::Place*> parts_;  // Of the place that is being divided.
  std::pmr::vector<std::uint64_t> part_loads_;
};

}  // namespace sterna::sched
