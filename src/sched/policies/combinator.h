// What policies made of others have in common: they pass events on to those inside them.
#pragma once

#include <vector>

#include "sched/policy.h"

namespace sterna::sched {

using Policies = std::vector<std::unique_ptr<Policy>>;

class Combinator : public Policy {
 public:
  [[nodiscard]] bool owns(std::uint32_t id) const noexcept override;
  [[nodiscard]] Result<> prepare(const topology::Topology& topology) override;
  [[nodiscard]] bool wants_meet() const noexcept override;
  [[nodiscard]] bool wants_wake() const noexcept override;
  [[nodiscard]] bool wants_leave() const noexcept override;
  /// One of them does.
  [[nodiscard]] bool offers(std::uint32_t key) const noexcept override;
  /// The shortest of them.
  [[nodiscard]] std::uint64_t tick_ns() const noexcept override;

  void grow(View& view, Entity& top) noexcept override;
  bool meet(View& view, Entity& entity, const topology::Place& processor) noexcept override;
  void wake(View& view, Entity& thread) noexcept override;
  void tick(View& view, Bubble* expired) noexcept override;
  void phase(View& view, std::uint32_t number) noexcept override;
  void leave(View& view, Entity& entity) noexcept override;
  void adjust(View& view, Entity& entity) noexcept override;

 protected:
  explicit Combinator(Policies inner) noexcept : inner_{std::move(inner)} {}

  /// The part of the machine of an inner policy.
  [[nodiscard]] virtual const topology::Place& domain_of(const View& view, std::size_t) const {
    return view.domain();
  }
  /// Which of them is, or owns, the policy of that id; inner_.size(): none.
  [[nodiscard]] virtual std::size_t index_of(std::uint32_t id) const noexcept;
  /// prepare() without that of those inside.
  void begin_ticks() { next_tick_ns_.assign(inner_.size(), 0); }
  /// Hands an outermost entity to an inner policy, gathered.
  void give(View& view, Entity& top, std::size_t index) noexcept;
  [[nodiscard]] View view_of(const View& view, std::size_t index) const noexcept {
    return view.of(*inner_[index], domain_of(view, index));
  }

  Policies inner_;  // Constant after prepare().

 private:
  /// Who rules it; inner_.size(): nobody yet.
  [[nodiscard]] std::size_t ruler_of(const View& view, const Entity& entity) const noexcept {
    return index_of(view.ruler_of(entity));
  }

  std::vector<std::uint64_t> next_tick_ns_;  // By inner policy.
};

/// Each argument from `first` on, as a policy.
[[nodiscard]] Result<Policies> make_policies(PolicyArguments arguments, std::size_t first);

}  // namespace sterna::sched
