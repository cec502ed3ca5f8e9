// Any set of workers that a thread may run on. Places (ThreadOptions::worker_count) are contiguous
// and cheaper to look at; this is for the others, and for changes by others.
//
// Thread::wanted_workers is what was ordered last; Thread::workers, with ThreadFlag::assorted, what
// counts. The second follows the first when somebody has the thread to himself: whoever takes it
// from a private queue sees Hold::restricted, as with all orders (run_queue.h), applies it and, if
// this worker is none of the set, passes the thread on. A thread that is leaving its processor in
// that very section is left in the queue: nobody else may run it before its registers are saved. So
// one that runs goes at its next call that may switch, one that waits in a queue at once, one that
// sleeps when it wakes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "threads/thread.h"

namespace sterna::threads {

class TeamState;
class Worker;

inline constexpr std::size_t kWorkerWords = 16;  // So many workers a team with sets has, by 64.

/// Constant, and as long-lived as its team, which has each set once: nobody asks who uses it.
class WorkerSet {
 public:
  using Words = std::array<std::uint64_t, kWorkerWords>;
  explicit WorkerSet(const Words& words) noexcept : words_{words} {}

  [[nodiscard]] bool has(std::uint32_t worker) const noexcept {
    return worker / 64 < kWorkerWords && (words_[worker / 64] >> worker % 64 & 1) != 0;
  }
  [[nodiscard]] const Words& words() const noexcept { return words_; }

 private:
  const Words words_;
};

/// `thread`, which has not ended and belongs to no Dispatch, runs on those workers only (bit i % 64
/// of word i / 64: worker i), or, with no words, on all. Fails with invalid_argument (no worker of
/// the team, or one that it does not have), refused (none of them is enabled), unsupported
/// (Dispatch says where it runs), out_of_memory. From anywhere. Switches if it is the caller.
[[nodiscard]] Result<> set_workers(Thread& thread, std::span<const std::uint64_t> words) noexcept;

/// Where it may run: what was ordered last. From anywhere.
[[nodiscard]] WorkerSet::Words workers_of(const Thread& thread) noexcept;

/// Of a thread that the caller has to himself.
[[nodiscard]] inline bool may_run_on(const Thread& thread, std::uint32_t worker) noexcept {
  constexpr std::uint32_t kTied = ThreadFlag::bound | ThreadFlag::assorted;
  if ((thread.flags & kTied) == 0) [[likely]] {
    return true;
  }
  return (thread.flags & ThreadFlag::assorted) != 0
             ? thread.workers.load(std::memory_order_relaxed)->has(worker)
             : worker - thread.worker_first < thread.worker_count;
}

/// An enabled worker for it, in turn; null: there is none.
[[nodiscard]] Worker* enabled_worker_for(TeamState& team, const Thread& thread) noexcept;

/// What an order has changed counts from now on. The caller has `thread` to himself. Whether it may
/// run where it is at home.
bool apply_restriction(Thread& thread) noexcept;
/// It is the one that leaves its processor in the section of the queue that the caller is in.
[[nodiscard]] bool is_leaving(const Thread& thread) noexcept;
/// To another worker, since it may not run where it is at home. As above; its registers are saved.
void pass_on(Thread& thread) noexcept;

}  // namespace sterna::threads
