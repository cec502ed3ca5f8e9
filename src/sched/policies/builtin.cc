// The table of policies: a new one is a file here, a line in builtin.h and one below.
#include "sched/policies/builtin.h"

#include <array>

namespace sterna::sched {

std::span<const PolicyEntry* const> builtin_policies() noexcept {
  static constexpr std::array kPolicies{&kFlatPolicy, &kSpreadPolicy};
  return kPolicies;
}

const PolicyEntry* find_policy(std::string_view name) noexcept {
  for (const PolicyEntry* const policy : builtin_policies()) {
    if (policy->name == name) {
      return policy;
    }
  }
  return nullptr;
}

}  // namespace sterna::sched
