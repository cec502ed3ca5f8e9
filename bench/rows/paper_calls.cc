// A function that does nothing, where no caller can see it.
#include "bench/rows/paper_calls.h"

namespace sterna::bench {

void nothing() noexcept {}

}  // namespace sterna::bench
