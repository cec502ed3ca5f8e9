// Phases (paper 003 §3.4.4, in time): the program says in which of its phases it is, and each has a
// policy: "phases(spread,gang)". A new phase places everything anew.
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

class Phases final : public Combinator {
 public:
  explicit Phases(Policies inner) noexcept : Combinator{std::move(inner)} {}

  void submit(View& view, Entity& top) noexcept override { give(view, top, current_); }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (view.is_ruled_by(*top, *this)) {
        give(view, *top, current_);
      }
    }
  }

  void phase(View& view, std::uint32_t number) noexcept override {
    if (const std::size_t wanted = number % inner_.size(); wanted != current_) {
      current_ = wanted;
      shake(view);
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    View its = view_of(view, current_);
    return inner_[current_]->idle(its, processor);
  }

 private:
  std::size_t current_ = 0;
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  auto inner = make_policies(arguments, 0);
  if (!inner) {
    return inner.error();
  }
  if (inner.value().empty()) {
    return unexpected_argument("phases", "", kPhasesPolicy.arguments);
  }
  return try_make<Policy, Phases>(std::move(inner.value()));
}

}  // namespace

constinit const PolicyEntry kPhasesPolicy{
    .name = "phases",
    .arguments = "POLICY,...",
    .summary = "one policy for each phase of the program, which says when a phase begins",
    .make = make,
};

}  // namespace sterna::sched
