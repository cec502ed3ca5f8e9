// See distribution.h.
#include "sched/distribution.h"

#include <algorithm>

namespace sterna::sched {
namespace {

bool can_open(const Entity& entity) noexcept {
  return entity.is_bubble() && !static_cast<const Bubble&>(entity).empty();
}

}  // namespace

Distribution::Distribution(View& view, const DistributionRules& rules) noexcept
    : view_{view},
      rules_{rules},
      memory_{view.scratch()},
      placed_by_program_{&memory_},
      parts_{&memory_},
      part_loads_{&memory_} {}

void Distribution::run() noexcept {
  Items items{&memory_};
  for (Entity* top = view_.first_top(); top != nullptr; top = view_.next_top(*top)) {
    add(items, *top);
  }
  divide(std::move(items), view_.domain());
  // What is placed inside something that is placed was found when that was opened or settled.
  for (std::size_t i = 0; i < placed_by_program_.size(); ++i) {
    Entity& entity = *placed_by_program_[i];
    Items alone{&memory_};
    alone.push_back({&entity, std::max<std::uint64_t>(view_.load(entity), 1), 0});
    divide(std::move(alone), view_.allowed(entity));
  }
}

void Distribution::add(Items& items, Entity& entity) {
  if (entity.program_place != kNoPlace) {
    placed_by_program_.push_back(&entity);
    return;
  }
  items.push_back({&entity, std::max<std::uint64_t>(view_.load(entity), 1), 0});
}

void Distribution::open_into(Items& items, std::size_t index, const topology::Place& place) {
  auto& bubble = static_cast<Bubble&>(*items[index].entity);
  view_.move(bubble, place);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
  for (Entity* held = bubble.first(); held != nullptr; held = held->next_sibling()) {
    add(items, *held);
  }
}

/// At the one worker below `place`.
void Distribution::settle(const Items& items, const topology::Place& around) {
  const topology::Place* deepest = &around;
  for (bool is_deeper = true; is_deeper;) {
    const auto child = std::ranges::find_if(
        deepest->children, [&](const auto* one) { return view_.worker_count(*one) != 0; });
    is_deeper = child != deepest->children.end();
    deepest = is_deeper ? *child : deepest;
  }
  const topology::Place& place = *deepest;
  for (const Item& item : items) {
    view_.move(*item.entity, place);
    if (item.entity->is_bubble()) {
      view_.gather(static_cast<Bubble&>(*item.entity));
    }
  }
}

void Distribution::open_while_few(Items& items, std::size_t part_count,
                                  const topology::Place& place) {
  while (items.size() < part_count) {
    const auto heaviest =
        std::max_element(items.begin(), items.end(), [](const Item& a, const Item& b) {
          return std::pair{can_open(*a.entity), a.load} < std::pair{can_open(*b.entity), b.load};
        });
    if (heaviest == items.end() || !can_open(*heaviest->entity)) {
      return;
    }
    open_into(items, static_cast<std::size_t>(heaviest - items.begin()), place);
  }
}

void Distribution::assign(Items& items, const topology::Place& place) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.load > b.load; });
  part_loads_.assign(parts_.size(), 0);
  std::uint64_t total = 0;
  for (const Item& item : items) {
    total += item.load;
  }
  const std::uint64_t workers = std::max(view_.worker_count(place), 1U);
  for (Item& item : items) {
    item.part = 0;
    for (std::uint32_t i = 1; i < parts_.size(); ++i) {
      // Compares load per worker, without a division.
      if (part_loads_[i] * view_.worker_count(*parts_[item.part]) <
          part_loads_[item.part] * view_.worker_count(*parts_[i])) {
        item.part = i;
      }
    }
    if (rules_.attraction != nullptr) {
      const std::uint32_t wanted = rules_.attraction(view_, *item.entity, place);
      for (std::uint32_t i = 0; i < parts_.size(); ++i) {
        const std::uint64_t share = total * view_.worker_count(*parts_[i]) / workers;
        if (parts_[i]->id == wanted &&
            (part_loads_[i] + item.load) * 100 <=
                std::max(share, item.load) * (100 + rules_.tolerance_percent)) {
          item.part = i;
        }
      }
    }
    part_loads_[item.part] += item.load;
  }
}

/// The lightest bubble of a part that has too much, or items.size().
std::size_t Distribution::item_to_open(const Items& items, const topology::Place& place) const {
  std::uint64_t total = 0;
  for (const std::uint64_t load : part_loads_) {
    total += load;
  }
  std::size_t best = items.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::uint64_t workers = view_.worker_count(*parts_[items[i].part]);
    const bool has_too_much = part_loads_[items[i].part] * view_.worker_count(place) * 100 >
                              total * workers * (100 + rules_.tolerance_percent);
    if (has_too_much && can_open(*items[i].entity) &&
        (best == items.size() || items[i].load < items[best].load)) {
      best = i;
    }
  }
  return best;
}

void Distribution::divide(Items items, const topology::Place& place) {
  if (items.empty()) {
    return;
  }
  if (place.children.empty() || view_.worker_count(place) <= 1) {
    settle(items, place);
    return;
  }
  const auto find_parts = [&] {
    parts_.clear();
    for (const topology::Place* const child : place.children) {
      if (view_.worker_count(*child) != 0) {
        parts_.push_back(child);
      }
    }
  };
  find_parts();
  open_while_few(items, parts_.size(), place);
  assign(items, place);
  for (std::size_t index = item_to_open(items, place); index < items.size();
       index = item_to_open(items, place)) {
    open_into(items, index, place);
    assign(items, place);
  }
  const std::size_t part_count = parts_.size();
  for (std::uint32_t part = 0; part < part_count; ++part) {
    Items of_part{&memory_};
    std::copy_if(items.begin(), items.end(), std::back_inserter(of_part),
                 [&](const Item& item) { return item.part == part; });
    divide(std::move(of_part), *parts_[part]);
    find_parts();  // The recursion used it.
  }
}

}  // namespace sterna::sched
