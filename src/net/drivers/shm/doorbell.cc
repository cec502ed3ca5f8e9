// The system calls of the doorbell.
#include "net/drivers/shm/doorbell.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/syscall.h"

namespace sterna::net::shm {

bool register_for_membarrier() noexcept {
  return raw_system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
         raw_system_call(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

void sleeper_fence(bool registered) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (registered) {
    check(raw_system_call(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0,
          "membarrier goes on working once it has worked");
  }
}

void ring_asleep(Segment& sleeper, int bell_fd) noexcept {
  if ((sleeper.state.fetch_and(~kAsleep, std::memory_order_acq_rel) & kAsleep) != 0) {
    sleeper.rung_ns.store(now_ns(), std::memory_order_relaxed);
    ring(bell_fd);
  }
}

void ring(int bell_fd) noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is at its end: then the bell is ringing already.
  raw_system_call(SYS_write, bell_fd, reinterpret_cast<long>(&one), sizeof one);
}

void silence(int bell_fd) noexcept {
  std::uint64_t rings;
  // Fails when nobody has rung.
  raw_system_call(SYS_read, bell_fd, reinterpret_cast<long>(&rings), sizeof rings);
}

}  // namespace sterna::net::shm
