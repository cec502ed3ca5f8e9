// Blocking calls: handed to a spare kernel thread, while the caller is parked.
#include "threads/carriers/blocking.h"

#include "threads/carriers/blocking_pool.h"
#include "threads/carriers/carrier.h"
#include "threads/scheduler.h"

namespace sterna::threads {

/// Lies on the stack of the caller.
struct BlockingPool::Job {
  FunctionRef<long()> function;
  Waiter waiter;
  long value = 0;
  Job* next = nullptr;
};

BlockingPool::~BlockingPool() {
  {
    const SpinGuard guard{lock_};
    is_closed_ = true;
  }
  jobs_.release(static_cast<std::uint32_t>(spares_.size()));
  for (const pthread_t spare : spares_) {
    (void)pthread_join(spare, nullptr);
  }
}

void* BlockingPool::spare_main(void* pool) noexcept {
  static_cast<BlockingPool*>(pool)->serve();
  return nullptr;
}

void BlockingPool::serve() noexcept {
  use_processors_of(team_);
  for (;;) {
    jobs_.acquire();
    Job* job = nullptr;
    {
      const SpinGuard guard{lock_};
      job = first_;
      if (job == nullptr) {
        return;  // The unit of the end.
      }
      first_ = job->next;
    }
    job->value = job->function();
    {
      const SpinGuard guard{lock_};
      ++free_count_;
    }
    job->waiter.signal();
  }
}

bool BlockingPool::claim_spare() noexcept {
  {
    const SpinGuard guard{lock_};
    if (free_count_ > 0) {
      --free_count_;  // In the section that looked: two callers do not count on one spare.
      return true;
    }
    if (spares_.size() >= kSpareMax) {
      --free_count_;  // Below 0: as many jobs wait for one.
      return true;
    }
  }
  pthread_t spare = {};
  const int error = pthread_create(&spare, nullptr, spare_main, this);
  const SpinGuard guard{lock_};
  if (error == 0) {
    spares_.push_back(spare);
    return true;
  }
  if (spares_.empty()) {
    return false;
  }
  --free_count_;
  return true;
}

bool BlockingPool::run(FunctionRef<long()> function, long& value) noexcept {
  if (!claim_spare()) {
    return false;
  }
  Job job{.function = function, .waiter = Waiter{*self()}};
  {
    const SpinGuard guard{lock_};
    (first_ == nullptr ? first_ : last_->next) = &job;
    last_ = &job;
  }
  jobs_.release();
  (void)await_signal();
  value = job.value;
  return true;
}

long blocking(FunctionRef<long()> function) noexcept {
  Thread* const me = self();
  if (me == nullptr) {
    return function();
  }
  TeamState& team = me->worker.load(std::memory_order_relaxed)->team;
  BlockingPool* pool = nullptr;
  {
    const SpinGuard guard{team.blocking_lock};
    if (team.blocking == nullptr) {
      team.blocking = std::make_unique<BlockingPool>(team);
    }
    pool = team.blocking.get();
  }
  long value = 0;
  return pool->run(function, value) ? value : function();
}

}  // namespace sterna::threads
