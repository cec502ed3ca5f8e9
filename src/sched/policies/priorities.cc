// Priorities (paper 003 §3.4.4, in levels): urgent outermost entities are ruled by the first
// policy, the others by the second: "priorities(gang,burst)". The mechanism runs what is urgent
// first; what it leaves of the machine is for the others, under their usual policy.
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/policies/combinator.h"

namespace sterna::sched {
namespace {

class Priorities final : public Combinator {
 public:
  explicit Priorities(Policies inner) noexcept : Combinator{std::move(inner)} {}

  void submit(View& view, Entity& top) noexcept override {
    give(view, top, top.effective_priority() >= kPriorityRealTime ? 0 : 1);
  }

  void shake(View& view) noexcept override {
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      if (view.is_ruled_by(*top, *this)) {
        submit(view, *top);
      }
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    View urgent = view_of(view, 0);
    View others = view_of(view, 1);
    return inner_[0]->idle(urgent, processor) || inner_[1]->idle(others, processor);
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  auto inner = make_policies(arguments, 0);
  if (!inner) {
    return inner.error();
  }
  if (inner.value().size() != 2) {
    return unexpected_argument("priorities", arguments.empty() ? "" : arguments.back(),
                               kPrioritiesPolicy.arguments);
  }
  return try_make<Policy, Priorities>(std::move(inner.value()));
}

}  // namespace

constinit const PolicyEntry kPrioritiesPolicy{
    .name = "priorities",
    .arguments = "URGENT,OTHERS",
    .summary = "one policy for what is urgent, another one for the rest of the machine",
    .make = make,
};

}  // namespace sterna::sched
