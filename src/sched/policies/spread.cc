// Spread: equal load on all processors, while bubbles stay together as deep in the machine as that
// allows (Thibault's "spread", BubbleSched). At each place, from the domain down: while there are
// fewer entities than parts, the heaviest bubble bursts into what it holds and remains at this
// place; then the entities go, heaviest first, each to the part that has the least load per
// processor.
#include <algorithm>
#include <vector>

#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

class Spreader {
 public:
  Spreader(const PlanInput& input, std::span<std::uint32_t> places)
      : input_{input},
        places_{places},
        held_(input.entities.size()),
        loads_(input.entities.size()) {
    for (std::size_t i = input.entities.size(); i-- > 0;) {
      const EntityView& entity = input.entities[i];
      loads_[i] += entity.is_bubble ? 0 : entity.load;
      if (entity.parent != kNoParent && entity.program_place == kNoPlace) {
        loads_[entity.parent] += loads_[i];
      }
    }
    for (std::uint32_t i = 0; i < input.entities.size(); ++i) {
      const EntityView& entity = input.entities[i];
      if (entity.program_place != kNoPlace) {
        starts_.push_back(i);
      } else if (entity.parent == kNoParent) {
        roots_.push_back(i);
      } else {
        held_[entity.parent].push_back(i);
      }
    }
  }

  void run() {
    spread(roots_, input_.domain);
    for (const std::uint32_t index : starts_) {
      spread({index}, *input_.topology.places()[input_.entities[index].program_place]);
    }
  }

 private:
  using Indices = std::vector<std::uint32_t>;

  /// The heaviest bubble that holds something, or entities.size().
  [[nodiscard]] std::size_t heaviest_bubble(const Indices& entities) const {
    std::size_t best = entities.size();
    for (std::size_t i = 0; i < entities.size(); ++i) {
      if (!held_[entities[i]].empty() &&
          (best == entities.size() || loads_[entities[i]] > loads_[entities[best]])) {
        best = i;
      }
    }
    return best;
  }

  void burst(Indices& entities, std::size_t index, const topology::Place& place) {
    const std::uint32_t bubble = entities[index];
    places_[bubble] = place.id;
    entities.erase(entities.begin() + static_cast<std::ptrdiff_t>(index));
    entities.insert(entities.end(), held_[bubble].begin(), held_[bubble].end());
  }

  void spread(Indices entities, const topology::Place& place) {
    if (entities.empty()) {
      return;
    }
    if (place.children.empty()) {
      settle(entities, place);
      return;
    }
    while (entities.size() < place.children.size()) {
      const std::size_t bubble = heaviest_bubble(entities);
      if (bubble == entities.size()) {
        break;
      }
      burst(entities, bubble, place);
    }
    std::stable_sort(entities.begin(), entities.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return loads_[a] > loads_[b]; });
    std::vector<Indices> parts(place.children.size());
    std::vector<std::uint64_t> part_loads(place.children.size());
    for (const std::uint32_t entity : entities) {
      const std::size_t part = lightest_part(place, part_loads);
      parts[part].push_back(entity);
      part_loads[part] += std::max<std::uint64_t>(loads_[entity], 1);
    }
    for (std::size_t part = 0; part < parts.size(); ++part) {
      spread(std::move(parts[part]), *place.children[part]);
    }
  }

  static std::size_t lightest_part(const topology::Place& place,
                                   const std::vector<std::uint64_t>& part_loads) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < part_loads.size(); ++i) {
      // Compares load per processor, without a division.
      if (part_loads[i] * place.children[best]->pu_count <
          part_loads[best] * place.children[i]->pu_count) {
        best = i;
      }
    }
    return best;
  }

  /// At a processor: everything, with all that bubbles hold.
  void settle(const Indices& entities, const topology::Place& place) {
    for (const std::uint32_t entity : entities) {
      places_[entity] = place.id;
      settle(held_[entity], place);
    }
  }

  const PlanInput& input_;
  const std::span<std::uint32_t> places_;
  std::vector<Indices> held_;  // What each bubble holds, without what the program has placed.
  std::vector<std::uint64_t> loads_;
  Indices roots_;
  Indices starts_;  // Entities that the program has placed.
};

void plan_spread(const PlanInput& input, std::span<std::uint32_t> places) {
  Spreader{input, places}.run();
}

}  // namespace

constinit const PolicyEntry kSpreadPolicy{
    .name = "spread",
    .summary = "equal load on all processors, bubbles as close together as that allows",
    .plan = plan_spread,
};

}  // namespace sterna::sched
