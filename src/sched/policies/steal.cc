// Steal (paper 003 §3.4.3): work starts on one processor, and those without work take some: from
// the nearest place first, and bubbles whole as long as the victim keeps something to do. The tree
// of bubbles is stretched along the machine, and only where that is needed.
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/stealing.h"

namespace sterna::sched {
namespace {

class Steal final : public Policy {
 public:
  void submit(View& view, Entity& top) noexcept override { view.move(top, start(view)); }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    return steal_nearest(view, processor, {});
  }

 private:
  /// The processor of the first worker of the domain.
  static const topology::Place& start(const View& view) noexcept {
    const topology::Place* place = &view.domain();
    while (!place->children.empty()) {
      for (const topology::Place* const child : place->children) {
        if (view.worker_count(*child) != 0) {
          place = child;
          break;
        }
      }
    }
    return *place;
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  if (!arguments.empty()) {
    return unexpected_argument("steal", arguments.front(), {});
  }
  return try_make<Policy, Steal>();
}

}  // namespace

constinit const PolicyEntry kStealPolicy{
    .name = "steal",
    .arguments = "",
    .summary = "starts on one processor; idle ones take bubbles, whole if they can, nearest first",
    .make = make,
};

}  // namespace sterna::sched
