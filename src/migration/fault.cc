// The end of a process whose test asked for it.
#include "migration/fault.h"

#include <csignal>

namespace sterna::migration {

void FaultPoint::die() noexcept { ::raise(SIGKILL); }

}  // namespace sterna::migration
