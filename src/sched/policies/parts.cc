// Parts (paper 003 §3.4.4, in space): each place of a kind is ruled by a policy of its own,
// "parts(numa,gang,spread)": node 0 by gang, node 1 by spread, node 2 by gang again. An outermost
// entity belongs to the part in which the program has placed it, else to the one with the least
// load per worker.
//
// Inside another policy, which has given it a part of the machine (View::domain()), only the places
// in that part count, or the one around it, as far as it is in there; the first policy has the
// whole part where there is no such place.
#include <algorithm>

#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

class Parts final : public Combinator {
 public:
  Parts(topology::PlaceKind kind, std::vector<std::string> texts) noexcept
      : Combinator{{}}, kind_{kind}, texts_{std::move(texts)} {}

  [[nodiscard]] Result<> prepare(const topology::Topology& topology) override {
    for (const topology::Place* const place : topology.places()) {
      if (place->kind == kind_) {
        auto made = make_policy(texts_[places_.size() % texts_.size()]);
        if (!made) {
          return made.error();
        }
        inner_.push_back(std::move(made.value()));
        places_.push_back(place);
      }
    }
    if (places_.empty()) {
      return Error{Errc::invalid_argument, "sched: policy parts: this machine has no " +
                                               std::string{topology::to_string(kind_)} +
                                               "; `sterna topo` shows what it has"};
    }
    return Combinator::prepare(topology);
  }

  void submit(View& view, Entity& top) noexcept override { give(view, top, part_for(view, top)); }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (view.is_ruled_by(*top, *this)) {
        give(view, *top, part_for(view, *top));
      }
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    for (std::size_t i = 0; i < inner_.size(); ++i) {
      if (covers(*places_[i], processor)) {
        View its = view_of(view, i);
        return inner_[i]->idle(its, processor);
      }
    }
    if (has_place(view)) {
      return false;
    }
    View its = view_of(view, 0);
    return inner_[0]->idle(its, processor);
  }

 protected:
  [[nodiscard]] const topology::Place& domain_of(const View& view,
                                                 std::size_t index) const override {
    return covers(view.domain(), *places_[index]) ? *places_[index] : view.domain();
  }

 private:
  [[nodiscard]] static bool is_part(const View& view, const topology::Place& place) noexcept {
    return covers(view.domain(), place) || covers(place, view.domain());
  }
  [[nodiscard]] bool has_place(const View& view) const noexcept {
    return std::ranges::any_of(places_, [&](const auto* one) { return is_part(view, *one); });
  }

  std::size_t part_for(const View& view, const Entity& top) const noexcept {
    std::size_t best = places_.size();
    std::uint64_t best_load = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!is_part(view, *places_[i])) {
        continue;
      }
      if (covers(*places_[i], view.allowed(top))) {
        return i;
      }
      const std::uint64_t workers = view.worker_count(domain_of(view, i));
      if (workers == 0) {
        continue;
      }
      std::uint64_t load = 0;
      const View its = view_of(view, i);
      for (const Entity* other = its.first_top(); other != nullptr; other = its.next_top(*other)) {
        load += other != &top ? view.load(*other) : 0;
      }
      // Per worker, finely enough for small loads.
      load = load * 1024 / workers;
      if (best == places_.size() || load < best_load) {
        best = i;
        best_load = load;
      }
    }
    return best < places_.size() ? best : 0;
  }

  const topology::PlaceKind kind_;
  const std::vector<std::string> texts_;
  std::vector<const topology::Place*> places_;  // By inner policy; constant after prepare().
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  const auto kind = arguments.empty() ? std::nullopt : to_place_kind(arguments.front());
  if (!kind || arguments.size() < 2) {
    return unexpected_argument("parts", arguments.empty() ? "" : arguments.front(),
                               kPartsPolicy.arguments);
  }
  if (auto inner = make_policies(arguments, 1); !inner) {
    return inner.error();
  }
  return try_make<Policy, Parts>(*kind,
                                 std::vector<std::string>{arguments.begin() + 1, arguments.end()});
}

}  // namespace

constinit const PolicyEntry kPartsPolicy{
    .name = "parts",
    .arguments = "KIND,POLICY,...",
    .summary = "each place of KIND has a policy of its own, in turn",
    .make = make,
};

}  // namespace sterna::sched
