// One line per policy. An entry is defined in balance/policies/<name>.cc.
#pragma once

#include "balance/policy.h"

namespace sterna::balance {

extern const PolicyEntry kNonePolicy;
extern const PolicyEntry kGreedyPolicy;
extern const PolicyEntry kRefinePolicy;
extern const PolicyEntry kPlacesPolicy;

}  // namespace sterna::balance
