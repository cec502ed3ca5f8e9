// Spread: equal load on all processors, while bubbles stay together as deep in the machine as that
// allows (Thibault's "spread", BubbleSched). Everything is divided anew whenever something is
// submitted; between, a processor without work takes some from the nearest one that has too much.
#include "sched/distribution.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/stealing.h"

namespace sterna::sched {
namespace {

class Spread final : public Policy {
 public:
  void submit(View& view, Entity&) noexcept override { shake(view); }
  void grow(View& view, Entity&) noexcept override { shake(view); }
  void shake(View& view) noexcept override { Distribution{view, {}}.run(); }
  bool idle(View& view, const topology::Place& processor) noexcept override {
    return steal_nearest(view, processor, {});
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  if (!arguments.empty()) {
    return unexpected_argument("spread", arguments.front(), {});
  }
  return try_make<Policy, Spread>();
}

}  // namespace

constinit const PolicyEntry kSpreadPolicy{
    .name = "spread",
    .arguments = "",
    .summary = "equal load on all processors, bubbles as close together as that allows",
    .make = make,
};

}  // namespace sterna::sched
