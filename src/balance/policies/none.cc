// The policy none: measure, never move. It shows what balancing would have to gain.
#include "balance/policies/builtin.h"

namespace sterna::balance {
namespace {

Result<Plan> plan_none(const Measures&, std::string_view) {
  return Plan{};
}

}  // namespace

constinit const PolicyEntry kNonePolicy{
    .name = "none",
    .summary = "never moves a rank",
    .plan = plan_none,
};

}  // namespace sterna::balance
