// One line per policy. An entry is defined in sched/policies/<name>.cc.
#pragma once

#include "sched/policy.h"

namespace sterna::sched {

extern const PolicyEntry kFlatPolicy;
extern const PolicyEntry kSpreadPolicy;

}  // namespace sterna::sched
