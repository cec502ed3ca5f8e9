// For builds without Boost.Context.
#include "bench/rows/foreign_switch.h"

namespace sterna::bench {

double foreign_switch_ns(std::span<std::byte> /*stack*/, int /*count*/) {
  return 0;
}

}  // namespace sterna::bench
