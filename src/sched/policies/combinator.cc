// See combinator.h.
#include "sched/policies/combinator.h"

#include <algorithm>

namespace sterna::sched {

bool Combinator::owns(std::uint32_t id) const noexcept {
  return Policy::owns(id) || index_of(id) < inner_.size();
}

std::size_t Combinator::index_of(std::uint32_t id) const noexcept {
  std::size_t index = 0;
  while (index < inner_.size() && !inner_[index]->owns(id)) {
    ++index;
  }
  return index;
}

Result<> Combinator::prepare(const topology::Topology& topology) {
  begin_ticks();
  for (const auto& one : inner_) {
    if (Result<> prepared = one->prepare(topology); !prepared) {
      return prepared;
    }
  }
  return Done{};
}

bool Combinator::wants_meet() const noexcept {
  return std::ranges::any_of(inner_, [](const auto& one) { return one->wants_meet(); });
}

bool Combinator::wants_leave() const noexcept {
  return std::ranges::any_of(inner_, [](const auto& one) { return one->wants_leave(); });
}

bool Combinator::wants_wake() const noexcept {
  return std::ranges::any_of(inner_, [](const auto& one) { return one->wants_wake(); });
}

bool Combinator::offers(std::uint32_t key) const noexcept {
  return std::ranges::any_of(inner_, [&](const auto& one) { return one->offers(key); });
}

std::uint64_t Combinator::tick_ns() const noexcept {
  std::uint64_t shortest = 0;
  for (const auto& one : inner_) {
    const std::uint64_t its = one->tick_ns();
    shortest = its != 0 && (shortest == 0 || its < shortest) ? its : shortest;
  }
  return shortest;
}

void Combinator::give(View& view, Entity& top, std::size_t index) noexcept {
  if (top.is_bubble()) {
    view.gather(static_cast<Bubble&>(top));
  }
  if (!view.is_ruled_by(top, *inner_[index])) {
    view.set_ruler(top, *inner_[index]);
    top.policy_word = 0;
  }
  View its = view_of(view, index);
  inner_[index]->submit(its, top);
}

void Combinator::grow(View& view, Entity& top) noexcept {
  if (const std::size_t index = ruler_of(view, top); index < inner_.size()) {
    View its = view_of(view, index);
    inner_[index]->grow(its, top);
  }
}

bool Combinator::meet(View& view, Entity& entity, const topology::Place& processor) noexcept {
  const std::size_t index = ruler_of(view, entity);
  if (index == inner_.size()) {
    return false;
  }
  View its = view_of(view, index);
  return inner_[index]->meet(its, entity, processor);
}

void Combinator::wake(View& view, Entity& thread) noexcept {
  if (const std::size_t index = ruler_of(view, thread); index < inner_.size()) {
    View its = view_of(view, index);
    inner_[index]->wake(its, thread);
  }
}

void Combinator::tick(View& view, Bubble* expired) noexcept {
  if (expired != nullptr) {
    if (const std::size_t index = ruler_of(view, *expired); index < inner_.size()) {
      View its = view_of(view, index);
      inner_[index]->tick(its, expired);
    }
    return;
  }
  const std::uint64_t now = view.now_ns();
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    if (inner_[i]->tick_ns() != 0 && now >= next_tick_ns_[i]) {
      next_tick_ns_[i] = now + inner_[i]->tick_ns();
      View its = view_of(view, i);
      inner_[i]->tick(its, nullptr);
    }
  }
}

void Combinator::phase(View& view, std::uint32_t number) noexcept {
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    View its = view_of(view, i);
    inner_[i]->phase(its, number);
  }
}

void Combinator::leave(View& view, Entity& entity) noexcept {
  if (const std::size_t index = ruler_of(view, entity); index < inner_.size()) {
    View its = view_of(view, index);
    inner_[index]->leave(its, entity);
  }
}

void Combinator::adjust(View& view, Entity& entity) noexcept {
  if (const std::size_t index = ruler_of(view, entity); index < inner_.size()) {
    View its = view_of(view, index);
    inner_[index]->adjust(its, entity);
  }
}

Result<Policies> make_policies(PolicyArguments arguments, std::size_t first) {
  Policies policies;
  for (std::size_t i = first; i < arguments.size(); ++i) {
    auto made = make_policy(arguments[i]);
    if (!made) {
      return made.error();
    }
    policies.push_back(std::move(made.value()));
  }
  return policies;
}

}  // namespace sterna::sched
