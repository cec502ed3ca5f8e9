// One line per policy. An entry is defined in sched/policies/<name>.cc.
#pragma once

#include "sched/policy.h"

namespace sterna::sched {

extern const PolicyEntry kFlatPolicy;
extern const PolicyEntry kSpreadPolicy;
extern const PolicyEntry kBurstPolicy;
extern const PolicyEntry kGangPolicy;
extern const PolicyEntry kStealPolicy;
extern const PolicyEntry kCachePolicy;
extern const PolicyEntry kMemoryPolicy;
extern const PolicyEntry kPartsPolicy;
extern const PolicyEntry kPhasesPolicy;
extern const PolicyEntry kPrioritiesPolicy;
extern const PolicyEntry kChoicePolicy;
extern const PolicyEntry kFallbackPolicy;

}  // namespace sterna::sched
