// What the simulated rows of paper 003 make of other machines than the one they are set for.
#pragma once

#include "bench/bench.h"

namespace sterna::bench {

/// Lines of `conduction` and `lu.tasks`.
void add_conduction_sweep(const Row& row, Bench& bench);
void add_lu_sweep(const Row& row, Bench& bench);

}  // namespace sterna::bench
