// Kernel threads that ranks create: what must exist before the first.
#pragma once

#include "base/result.h"

namespace sterna::program {

/// Once a process.
Result<> prepare_threads();

}  // namespace sterna::program
