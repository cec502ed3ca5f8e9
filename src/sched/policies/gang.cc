// Gang (Ousterhout; paper 003 §3.4.2, fig. 6): one outermost bubble at a time has the processors,
// for a time slice; the others are aside. With a kind of place ("gang(numa)", the paper's gang2)
// each such place has a gang of its own, and all take from one pool.
//
// Invariant: what is aside is the pool; every other entity of ours is planned at one of the places,
// at most one a place. policy_word is the turn in which an entity was put aside, or the time since
// which it has its place.
#include <algorithm>

#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

constexpr std::uint64_t kSliceNs = 10'000'000;

class Gang final : public Policy {
 public:
  Gang(topology::PlaceKind kind, std::uint64_t slice_ns) noexcept
      : kind_{kind}, slice_ns_{slice_ns} {}

  [[nodiscard]] std::uint64_t tick_ns() const noexcept override { return slice_ns_; }

  void submit(View& view, Entity& top) noexcept override {
    top.policy_word = ++turn_;
    bool is_placed = false;
    for_each_place(view, [&](const topology::Place& place) {
      if (!is_placed && may_have(view, place, top) && current(view, place) == nullptr) {
        place_at(view, top, place);
        is_placed = true;
      }
    });
    if (!is_placed) {
      view.set_aside(top);
    }
  }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (top->is_bubble()) {
        view.gather(static_cast<Bubble&>(*top));
      }
      view.set_aside(*top);
    }
    tick(view, nullptr);
  }

  void tick(View& view, Bubble* expired) noexcept override {
    const Entity* const over = expired != nullptr ? &view.top_of(*expired) : nullptr;
    for_each_place(view, [&](const topology::Place& place) {
      const Entity* const now = current(view, place);
      // A gang to which the program gave a slice has that one, as long as it does something.
      if (over != nullptr ? now == over : now == nullptr || has_had_its_turn(view, *now)) {
        rotate(view, place);
      }
    });
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    bool has_changed = false;
    bool has_own = false;
    // Upwards: idle processors ask often, and a machine has many places.
    for (const topology::Place* place = &processor; place != nullptr; place = place->parent) {
      if (place->kind == kind_ && covers(view.domain(), *place)) {
        has_own = true;
        has_changed = rotate_if_done(view, *place) || has_changed;
      }
    }
    return has_own || has_place(view) ? has_changed : rotate_if_done(view, view.domain());
  }

 private:
  /// The places that have a gang each: the domain, if it has none of the kind.
  template <typename Function>
  void for_each_place(const View& view, Function&& function) const noexcept {
    bool has_any = false;
    for (const topology::Place* const place : view.topology().places()) {
      if (is_gang_place(view, *place)) {
        has_any = true;
        function(*place);
      }
    }
    if (!has_any) {
      function(view.domain());
    }
  }

  [[nodiscard]] bool has_place(const View& view) const noexcept {
    return std::ranges::any_of(view.topology().places(), [&](const topology::Place* place) {
      return is_gang_place(view, *place);
    });
  }
  [[nodiscard]] bool is_gang_place(const View& view, const topology::Place& place) const noexcept {
    return place.kind == kind_ && covers(view.domain(), place) && view.worker_count(place) != 0;
  }

  /// At a tick: unless it has a slice of its own, or got the place just before.
  [[nodiscard]] bool has_had_its_turn(const View& view, const Entity& gang) const noexcept {
    const bool has_own_slice =
        gang.is_bubble() && static_cast<const Bubble&>(gang).slice_ns != 0 && view.is_active(gang);
    return !has_own_slice && view.now_ns() - gang.policy_word >= slice_ns_ / 2;
  }

  /// The program allows it some processor there.
  static bool may_have(const View& view, const topology::Place& place, const Entity& top) noexcept {
    const topology::Place& allowed = view.allowed(top);
    return covers(place, allowed) || covers(allowed, place);
  }

  static Entity* current(const View& view, const topology::Place& place) noexcept {
    Entity* top = view.first_top();
    while (top != nullptr && top->planned_place() != place.id) {
      top = view.next_top(*top);
    }
    return top;
  }

  static void place_at(View& view, Entity& top, const topology::Place& place) noexcept {
    top.policy_word = view.now_ns();
    view.move(top, place);
  }

  /// The next of the pool gets the place. False: nobody waits for it.
  bool rotate(View& view, const topology::Place& place) noexcept {
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
    if (Entity* const now = current(view, place); now != nullptr) {
      now->policy_word = ++turn_;
      view.set_aside(*now);
    }
    place_at(view, *next, place);
    return true;
  }

  /// Whoever is idle there may take the next gang. Whether there is one.
  bool rotate_if_done(View& view, const topology::Place& place) noexcept {
    const Entity* const now = current(view, place);
    return (now == nullptr || !view.is_active(*now)) && rotate(view, place);
  }

  const topology::PlaceKind kind_;
  const std::uint64_t slice_ns_;
  std::uint64_t turn_ = 0;
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  topology::PlaceKind kind = topology::PlaceKind::machine;
  std::uint64_t slice_ns = kSliceNs;
  for (const std::string_view argument : arguments) {
    auto slice = to_slice_ns(argument);
    if (!slice) {
      return slice.error();
    }
    if (slice.value()) {
      slice_ns = *slice.value();
    } else if (const auto word = to_place_kind(argument)) {
      kind = *word;
    } else {
      return unexpected_argument("gang", argument, kGangPolicy.arguments);
    }
  }
  return try_make<Policy, Gang>(kind, slice_ns);
}

}  // namespace

constinit const PolicyEntry kGangPolicy{
    .name = "gang",
    .arguments = "KIND,slice=MS",
    .summary = "one bubble at a time on the machine (on each place of KIND, from one pool)",
    .make = make,
};

}  // namespace sterna::sched
