// Waiting for completions, with the rank's collectives advancing meanwhile.
#include "mpi/request/wait.h"

#include <algorithm>

#include "mpi/coll/schedule.h"
#include "mpi/errors/error.h"
#include "mpi/request/request.h"
#include "progress/progress.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

constexpr std::size_t kWatchedMax = 64;  // More are looked at every kRecheckNs.
constexpr std::uint64_t kRecheckNs = 200'000;
constexpr std::uint64_t kRecheckMaxNs = 25'600'000;
constexpr std::uint32_t kEagerRounds = 64;  // Of wait_a_little before it sleeps.
constexpr std::uint64_t kNapNs = 50'000;

struct Watched {
  progress::Completion* entries[kWatchedMax];
  std::size_t count = 0;
  bool is_complete = true;  // False: not all fitted, or another thread may change what to watch.

  void add(progress::Completion* completion) noexcept {
    if (completion == nullptr) {
      return;
    }
    if (count == kWatchedMax) {
      is_complete = false;
      return;
    }
    entries[count++] = completion;
  }
};

// Watches the schedules' own messages: who sees one end can advance its schedule. A completion has
// one waiter, so with several threads only the holder of `is_advancing` watches them; the others,
// and those whose schedule came after it looked, look again after a while.
class ScheduleWatch {
 public:
  ScheduleWatch(RankState& state, Watched& watched) noexcept : state_{state} {
    if (state.active_schedules == nullptr) {
      return;
    }
    // Also while one thread calls (progress/one_caller.h): a second one may come during the wait.
    if (state.thread_level == MPI_THREAD_MULTIPLE) {
      watched.is_complete = false;
      if (state.is_advancing.exchange(true, std::memory_order_acquire)) {
        return;
      }
      is_holder_ = true;
    }
    StateGuard guard{state};
    for (Schedule* s = state.active_schedules; s != nullptr; s = s->next) {
      watched.add(blocker(*s));
    }
  }
  ~ScheduleWatch() {
    if (is_holder_) {
      state_.is_advancing.store(false, std::memory_order_release);
    }
  }
  ScheduleWatch(const ScheduleWatch&) = delete;
  ScheduleWatch& operator=(const ScheduleWatch&) = delete;

 private:
  RankState& state_;
  bool is_holder_ = false;
};

void sleep_on(RankState& state, Watched& watched) noexcept {
  {
    ScheduleWatch schedules{state, watched};
    threads::WaitOptions options;
    options.is_interruptible = state.context->slot != nullptr;
    if (!watched.is_complete) {
      options.deadline_ns = now_ns() + kRecheckNs;
    }
    if (watched.count != 0) {
      (void)progress::Completion::wait_any(*state.context->progress,
                                           {watched.entries, watched.count}, options);
    }
  }
  if (watched.count == 0) {
    wait_a_little(state, kEagerRounds);
  } else {
    runtime::safe_point(*state.context);
  }
}

}  // namespace

void wait_done_slowly(RankState& state, progress::Completion& done) noexcept {
  runtime::safe_point(*state.context);
  std::uint64_t recheck_ns = kRecheckNs;
  while (!done.done()) {
    if (state.active_schedules == nullptr) [[likely]] {
      threads::WaitOptions options;
      options.is_interruptible = state.context->slot != nullptr;
      // Another thread may start a collective meanwhile, and leave it to this one to advance it:
      // seldom, so that who waits for long looks less and less often.
      if (state.thread_level == MPI_THREAD_MULTIPLE) {
        options.deadline_ns = now_ns() + recheck_ns;
        recheck_ns = std::min(2 * recheck_ns, kRecheckMaxNs);
      }
      (void)done.wait_for(*state.context->progress, options);
      runtime::safe_point(*state.context);
      continue;
    }
    advance_schedules(state);
    if (done.done()) {
      return;
    }
    Watched watched;
    watched.add(&done);
    sleep_on(state, watched);
  }
}

void wait_for_one(RankState& state, const MPI_Request* handles, int count) noexcept {
  runtime::safe_point(*state.context);
  advance_schedules(state);
  Watched watched;
  for (int i = 0; i < count; ++i) {
    Request* request = handles[i] == MPI_REQUEST_NULL ? nullptr : find_request(handles[i]);
    if (request == nullptr || !request->is_active) {
      continue;
    }
    if (request->type == RequestType::flush && !is_done(state, *request)) {
      watched.is_complete = false;
      continue;
    }
    progress::Completion* completion = completion_of(*request);
    if (completion == nullptr || completion->done()) {
      return;
    }
    watched.add(completion);
  }
  sleep_on(state, watched);
}

void wait_a_little(RankState& state, std::uint32_t round) noexcept {
  advance_schedules(state);
  if (round < kEagerRounds) {
    runtime::tested_in_vain(*state.context);
    return;
  }
  runtime::nap_until(*state.context, now_ns() + kNapNs);
}

void poll_once(RankState& state) noexcept {
  (void)state.context->progress->poll();
  advance_schedules(state);
}

int class_of_fault(net::Fault fault) noexcept {
  switch (fault) {
    case net::Fault::none:
      return MPI_SUCCESS;
    case net::Fault::truncated:
      return MPI_ERR_TRUNCATE;
    case net::Fault::peer_lost:
      return MPI_ERR_PROC_ABORTED;
    case net::Fault::no_memory:
      return MPI_ERR_NO_MEM;
    case net::Fault::cancelled:
      return MPI_SUCCESS;  // The status says so.
  }
  return MPI_ERR_INTERN;
}

}  // namespace sterna::mpi
