// Flat: one queue for the whole domain; whoever is free takes the next thread. Bubbles mean
// nothing, but what the program asked for (a place of its own, or of a holder) counts.
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

class Flat final : public Policy {
 public:
  void submit(View& view, Entity& top) noexcept override { view.move(top, view.domain()); }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  if (!arguments.empty()) {
    return unexpected_argument("flat", arguments.front(), {});
  }
  return try_make<Policy, Flat>();
}

}  // namespace

constinit const PolicyEntry kFlatPolicy{
    .name = "flat",
    .arguments = "",
    .summary = "one queue for all processors, bubbles are ignored",
    .make = make,
};

}  // namespace sterna::sched
