// Gang (Ousterhout; paper 003 §3.4.2, fig. 6): one outermost bubble at a time has the processors,
// for a time slice; the others are aside. With a kind of place ("gang(numa)", the paper's gang2)
// each such place has a gang of its own, and all take from one pool. With policies inside
// (§3.4.4: "gang(numa,burst)") that which has a place is ruled there by an object of its policy;
// with several of them gangs have them in turn, in the order in which they come.
//
// Invariant: what is aside is the pool; every other entity of ours has one of the places, at most
// one a place: it is planned there, or, with policies inside, ruled by an object of that place.
// policy_word: of the pool, the turn in which it was put aside times the number of policies, plus
// that of its own; of what has a place, the time since when, or a policy inside's.
#include <algorithm>

#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

constexpr std::uint64_t kSliceNs = 10'000'000;

class Gang final : public Combinator {
 public:
  Gang(topology::PlaceKind kind, std::uint64_t slice_ns, std::vector<std::string> texts) noexcept
      : Combinator{{}}, kind_{kind}, slice_ns_{slice_ns}, texts_{std::move(texts)} {}

  [[nodiscard]] Result<> prepare(const topology::Topology& topology) override {
    for (const topology::Place* const place : topology.places()) {
      if (place->kind == kind_) {
        places_.push_back(place);
      }
    }
    since_ns_.resize(places_.size() + 1);
    for (std::size_t i = 0; i < since_ns_.size() * texts_.size(); ++i) {
      last_ids_before_.push_back(last_id());
      auto made = make_policy(texts_[i % texts_.size()]);
      if (!made) {
        return made.error();
      }
      inner_.push_back(std::move(made.value()));
      if (Result<> prepared = inner_.back()->prepare(topology); !prepared) {
        return prepared;
      }
    }
    begin_ticks();
    return Done{};
  }

  [[nodiscard]] std::uint64_t tick_ns() const noexcept override {
    const std::uint64_t inside = Combinator::tick_ns();
    return inside == 0 ? slice_ns_ : std::min(inside, slice_ns_);
  }

  void submit(View& view, Entity& top) noexcept override {
    withdraw(view, top);
    bool is_placed = false;
    for_each_place(view, [&](std::size_t index, const topology::Place& place) {
      if (!is_placed && may_have(view, place, top) && current(view, index, place) == nullptr) {
        install(view, top, index, place);
        is_placed = true;
      }
    });
  }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (top->is_bubble()) {
        view.gather(static_cast<Bubble&>(*top));
      }
      withdraw(view, *top);
    }
    rotate_all(view, nullptr);
  }

  void tick(View& view, Bubble* expired) noexcept override {
    if (expired == nullptr) {
      Combinator::tick(view, nullptr);
      // Policies inside may want more ticks than we do.
      if (texts_.empty() || view.now_ns() >= next_turn_ns_) {
        next_turn_ns_ = view.now_ns() + slice_ns_;
        rotate_all(view, nullptr);
      }
      return;
    }
    const Entity& top = view.top_of(*expired);
    if (texts_.empty() || (&top == expired && expired->slice_ns != 0)) {
      rotate_all(view, &top);
    } else {
      Combinator::tick(view, expired);
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    bool has_changed = false;
    bool has_own = false;
    // Upwards: idle processors ask often, and a machine has many places.
    for (const topology::Place* place = &processor; place != nullptr; place = place->parent) {
      if (place->kind == kind_ && covers(view.domain(), *place)) {
        has_own = true;
        has_changed = serve_idle(view, place->index, *place, processor) || has_changed;
      }
    }
    return has_own || has_place(view) ? has_changed
                                      : serve_idle(view, places_.size(), view.domain(), processor);
  }

 protected:
  [[nodiscard]] const topology::Place& domain_of(const View& view,
                                                 std::size_t inside) const override {
    const std::size_t index = inside / texts_.size();
    return index < places_.size() ? *places_[index] : view.domain();
  }
  /// Those made for one object have ids in a row: what owns() costs does not grow with the machine.
  [[nodiscard]] std::size_t index_of(std::uint32_t id) const noexcept override {
    const auto after = std::ranges::lower_bound(last_ids_before_, id);
    const auto index = static_cast<std::size_t>(after - last_ids_before_.begin());
    return index != 0 && inner_[index - 1]->owns(id) ? index - 1 : inner_.size();
  }

 private:
  /// The places that have a gang each: the domain, if it has none of the kind.
  template <typename Function>
  void for_each_place(const View& view, Function&& function) const noexcept {
    bool has_any = false;
    for (std::size_t index = 0; index < places_.size(); ++index) {
      if (is_gang_place(view, *places_[index])) {
        has_any = true;
        function(index, *places_[index]);
      }
    }
    if (!has_any) {
      function(places_.size(), view.domain());
    }
  }

  [[nodiscard]] bool has_place(const View& view) const noexcept {
    return std::ranges::any_of(places_, [&](const auto* one) { return is_gang_place(view, *one); });
  }
  [[nodiscard]] static bool is_gang_place(const View& view, const topology::Place& place) noexcept {
    return covers(view.domain(), place) && view.worker_count(place) != 0;
  }

  /// At a tick: unless it has a slice of its own, or got the place just before.
  [[nodiscard]] bool has_had_its_turn(const View& view, const Entity& gang,
                                      std::size_t index) const noexcept {
    const bool has_own_slice =
        gang.is_bubble() && static_cast<const Bubble&>(gang).slice_ns != 0 && view.is_active(gang);
    const std::uint64_t since = texts_.empty() ? gang.policy_word : since_ns_[index];
    return !has_own_slice && view.now_ns() - since >= slice_ns_ / 2;
  }

  /// The program allows it some processor there.
  static bool may_have(const View& view, const topology::Place& place, const Entity& top) noexcept {
    const topology::Place& allowed = view.allowed(top);
    return covers(place, allowed) || covers(allowed, place);
  }

  /// Of what has a place and policies inside: which one rules it; inner_.size(): none.
  [[nodiscard]] std::size_t inside_of(const View& view, const Entity& top) const noexcept {
    return texts_.empty() ? 0 : index_of(view.ruler_of(top));
  }

  [[nodiscard]] Entity* current(const View& view, std::size_t index,
                                const topology::Place& place) const noexcept {
    Entity* top = view.first_top();
    while (top != nullptr && (texts_.empty() ? top->planned_place() != place.id
                                             : inside_of(view, *top) / texts_.size() != index)) {
      top = view.next_top(*top);
    }
    return top;
  }

  void install(View& view, Entity& top, std::size_t index, const topology::Place& place) noexcept {
    if (texts_.empty()) {
      top.policy_word = view.now_ns();
      view.move(top, place);
      return;
    }
    since_ns_[index] = view.now_ns();
    give(view, top, index * texts_.size() + top.policy_word % texts_.size());
  }

  /// To the pool: as the last of it.
  void withdraw(View& view, Entity& top) noexcept {
    const std::uint64_t count = std::max<std::size_t>(texts_.size(), 1);
    const std::size_t inside = inside_of(view, top);
    std::uint64_t own = top.policy_word;  // 0: it is new.
    if (!texts_.empty() && inside < inner_.size()) {
      own = inside;
      if (top.is_bubble()) {
        view.gather(static_cast<Bubble&>(top));
      }
      view.set_ruler(top, *this);
    } else if (own == 0) {
      own = come_++;
    }
    top.policy_word = ++turn_ * count + own % count;
    view.set_aside(top);
  }

  /// Where nobody is, or somebody has had a turn; `over`: only where that one is.
  void rotate_all(View& view, const Entity* over) noexcept {
    for_each_place(view, [&](std::size_t index, const topology::Place& place) {
      const Entity* const now = current(view, index, place);
      // A gang to which the program gave a slice has that one, as long as it does something.
      if (over != nullptr ? now == over : now == nullptr || has_had_its_turn(view, *now, index)) {
        rotate(view, index, place);
      }
    });
  }

  /// The next of the pool gets the place. False: nobody waits for it.
  bool rotate(View& view, std::size_t index, const topology::Place& place) noexcept {
    Entity* next = nullptr;
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (top->planned_place() == kAside && may_have(view, place, *top) && view.is_active(*top) &&
          (next == nullptr || top->policy_word < next->policy_word)) {
        next = top;
      }
    }
    if (next == nullptr) {
      return false;
    }
    if (Entity* const now = current(view, index, place); now != nullptr) {
      withdraw(view, *now);
    }
    install(view, *next, index, place);
    return true;
  }

  /// Whoever is idle there may take the next gang, or what the policy inside has for it. Whether
  /// there is something.
  bool serve_idle(View& view, std::size_t index, const topology::Place& place,
                  const topology::Place& processor) noexcept {
    const Entity* const now = current(view, index, place);
    if (now == nullptr || !view.is_active(*now)) {
      return rotate(view, index, place);
    }
    if (texts_.empty()) {
      return false;
    }
    const std::size_t inside = inside_of(view, *now);
    View its = view_of(view, inside);
    return inner_[inside]->idle(its, processor);
  }

  const topology::PlaceKind kind_;
  const std::uint64_t slice_ns_;
  const std::vector<std::string> texts_;  // Of the policies inside; empty: a gang stays whole.
  // Constant after prepare(). Behind the places comes the domain, where it has none of the kind;
  // inner_ has texts_.size() objects for each, last_ids_before_ what last_id() was before each.
  std::vector<const topology::Place*> places_;
  std::vector<std::uint32_t> last_ids_before_;
  std::vector<std::uint64_t> since_ns_;  // By place, with policies inside: when its gang came.
  std::uint64_t turn_ = 0;
  std::uint64_t come_ = 0;  // Gangs that were new.
  std::uint64_t next_turn_ns_ = 0;
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  topology::PlaceKind kind = topology::PlaceKind::machine;
  std::uint64_t slice_ns = kSliceNs;
  std::vector<std::string> inside;
  for (const std::string_view argument : arguments) {
    auto slice = to_slice_ns(argument);
    if (!slice) {
      return slice.error();
    }
    if (slice.value()) {
      slice_ns = *slice.value();
    } else if (const auto word = to_place_kind(argument)) {
      kind = *word;
    } else if (find_policy(argument.substr(0, argument.find('('))) == nullptr) {
      return unexpected_argument("gang", argument, kGangPolicy.arguments);
    } else if (auto made = make_policy(argument); !made) {
      return made.error();
    } else {
      inside.emplace_back(argument);
    }
  }
  return try_make<Policy, Gang>(kind, slice_ns, std::move(inside));
}

}  // namespace

constinit const PolicyEntry kGangPolicy{
    .name = "gang",
    .arguments = "KIND,slice=MS,POLICY,...",
    .summary =
        "one bubble at a time on the machine (on each place of KIND, from one pool); "
        "POLICY places what is in it",
    .make = make,
};

}  // namespace sterna::sched
