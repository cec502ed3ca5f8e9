// The table of policies: a new one is a file here, a line in builtin.h and one below.
#include "sched/policies/builtin.h"

#include <array>

namespace sterna::sched {

std::span<const PolicyEntry* const> builtin_policies() noexcept {
  static constexpr std::array kPolicies{&kFlatPolicy,       &kSpreadPolicy, &kBurstPolicy,
                                        &kGangPolicy,       &kStealPolicy,  &kCachePolicy,
                                        &kMemoryPolicy,     &kPartsPolicy,  &kPhasesPolicy,
                                        &kPrioritiesPolicy, &kChoicePolicy, &kFallbackPolicy};
  return kPolicies;
}

}  // namespace sterna::sched
