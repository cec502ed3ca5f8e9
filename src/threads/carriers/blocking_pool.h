// The spare kernel threads of a team, on which blocking calls wait. Internal to threads/.
#pragma once

#include <atomic>
#include <vector>

#include <pthread.h>

#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "threads/sync/semaphore.h"
#include "threads/waiter.h"

namespace sterna::threads {

class TeamState;

/// As many kernel threads as calls that block at the same time, up to kSpareMax; then calls queue.
/// They stay until the pool is destroyed.
class BlockingPool {
 public:
  static constexpr std::uint32_t kSpareMax = 256;

  explicit BlockingPool(const TeamState& team) noexcept : team_{team} {}
  ~BlockingPool();

  /// False: no kernel thread could be started, and none runs: call it directly. Switches.
  bool run(FunctionRef<long()> function, long& value) noexcept;

 private:
  struct Job;
  static void* spare_main(void* pool) noexcept;
  void serve() noexcept;
  /// One of the spare threads will serve one more job. False: there is none.
  bool claim_spare() noexcept;

  const TeamState& team_;
  SpinLock lock_;
  Job* first_ = nullptr;  // All guarded by lock_.
  Job* last_ = nullptr;
  std::int32_t free_count_ = 0;  // Spare threads less the jobs that they serve or will serve.
  bool is_closed_ = false;
  std::vector<pthread_t> spares_;
  Semaphore jobs_{0};  // One unit per job, and one per thread at the end.
};

}  // namespace sterna::threads
