// Yields, then naps.
#include "base/backoff.h"

#include <ctime>

#include <sys/syscall.h>

#include "base/syscall.h"

namespace sterna {

[[gnu::cold]] void Backoff::leave_processor() noexcept {
  if (turns_ < kSpins + kYields) {
    raw_system_call(SYS_sched_yield);
    return;
  }
  const timespec nap{.tv_sec = 0, .tv_nsec = kNapNs};
  raw_system_call(SYS_nanosleep, reinterpret_cast<std::uintptr_t>(&nap), 0);
}

}  // namespace sterna
