// The workers of one node: kernel threads, one per processor, that run user threads.
//
// An object: several teams may exist in one process (tests). Who may call what: spawn, adopt,
// start, reinstall and wake_idle from anywhere; run() once, by the kernel thread that will be
// worker 0; stop() from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "threads/dispatch.h"
#include "threads/idle_hook.h"
#include "threads/thread.h"

namespace sterna::memory {
class IsoSpace;
}  // namespace sterna::memory

namespace sterna::threads {

class TeamState;

/// A fault that is no stack overflow. Runs in the signal handler, on the alternate stack of its
/// kernel thread.
struct CrashInfo {
  int signal;
  std::uintptr_t address;  // The faulting address.
  const Thread* thread;    // Null: not on a user thread.
  const Worker* worker;    // Null: a foreign kernel thread.
  void* signal_context;    // ucontext_t.
};

/// See preempt.h.
enum class PreemptMode : std::uint8_t { none, slice, communication };

struct TeamOptions {
  std::uint32_t worker_count = 1;  // At least 1.
  // OS index per worker to bind to; empty: no binding.
  std::span<const std::uint32_t> processors = {};
  bool main_is_worker = false;  // Worker 0 is the kernel thread that calls run().
  bool steal = true;            // Idle workers take threads from the queues of others.
  // An idle worker polls for so long before it sleeps; 0 if oversubscribed.
  std::uint64_t spin_ns = 20'000;
  std::uint32_t switch_poll_interval = 64;  // Every n-th switch polls the hook; 0: never.
  // While all workers compute and none polls the hook, it is polled at this interval (ticker.h);
  // 0: never, and no ticker is started.
  std::uint64_t tick_ns = 0;
  PreemptMode preempt = PreemptMode::none;
  std::uint64_t slice_ns = 10'000'000;  // The ticker ticks as often, at least.
  // A worker whose kernel thread sleeps in a call of its program's code, while others wait, goes on
  // with another kernel thread: carrier.h. Preemption implies it.
  bool take_over = false;
  std::uint32_t carriers_max = 256;  // Kernel threads that carry workers or preempted threads.
  Dispatch* dispatch = nullptr;      // Schedules the threads with an entity. Outlives the team.
  IdleHook* idle_hook = nullptr;     // Outlives the team.
  // Where stacks come from; outlives the team. Needed for spawn().
  memory::IsoSpace* iso_space = nullptr;
  Clock* clock = nullptr;  // Null: the monotonic clock. Outlives the team.
};

class Team {
 public:
  /// Starts the workers (all but worker 0 with `main_is_worker`).
  static Result<std::unique_ptr<Team>> open(const TeamOptions& options) noexcept;

  /// stop() and waits for the workers. All threads must have ended (check).
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// A new runnable thread. An exception that leaves `entry` ends the process with a message.
  Result<Thread*> spawn(const ThreadOptions& options, Entry entry, void* argument) noexcept;
  /// One with the usual options: some ns less.
  Result<Thread*> spawn(Entry entry, void* argument) noexcept;

  /// The same, with thread-local variables of its own, which costs a kernel thread that waits:
  /// locals.h.
  Result<Thread*> spawn_with_locals(const ThreadOptions& options, Entry entry,
                                    void* argument) noexcept;

  /// A thread in memory of the caller, which stays the caller's until join() returns (detached:
  /// until Dispatch::ended or never). Not runnable before start().
  Thread* adopt(const StackRegion& region, const ThreadOptions& options, Entry entry,
                void* argument) noexcept;

  /// Makes an adopted or frozen thread runnable, on `worker` if given.
  void start(Thread& thread, std::uint32_t worker = kAnyWorker) noexcept;

  /// The bytes of a thread, frozen in another node, have arrived at the same address here: it
  /// belongs to this team now, and nothing in it leads back there. Before anyone here may look at
  /// it (observe.h, DirectWay::worker_of); reinstall() does it for who lets nobody.
  void take_over(Thread& thread) noexcept;

  /// A thread whose bytes have arrived, as above: runnable.
  Thread* reinstall(Thread* thread, std::uint32_t worker = kAnyWorker) noexcept;

  /// A thread left this node for good after freeze(): the team forgets it (it is not waited for any
  /// more).
  void forget(Thread& thread) noexcept;

  /// With `main_is_worker`: runs threads on the calling kernel thread until stop().
  void run() noexcept;

  /// Workers end when their current thread leaves the processor. Does not wait.
  void stop() noexcept;

  /// The processor of that worker is taken away: its kernel thread leaves it, and what it has goes
  /// to others, a running thread after some switches. What is bound to it, and to no other worker
  /// that is enabled, goes on there, on the processors of the others. REFUSED: it is the last one.
  /// No effect if it is disabled. From anywhere; a Dispatch hears of it from its owner, before.
  Result<> disable(std::uint32_t worker) noexcept;
  /// Gives it back; a Dispatch hears of it afterwards.
  void enable(std::uint32_t worker) noexcept;
  [[nodiscard]] bool is_enabled(std::uint32_t worker) const noexcept;

  /// Wakes one sleeping worker of [first, first + count), if there is one and nobody is already
  /// looking for work.
  void wake_idle(std::uint32_t first, std::uint32_t count) noexcept;

  /// Something of the network is expected within `duration_ns`: if the team runs out of work
  /// before, one worker polls on instead of going to sleep, which would cost more than the wait.
  /// Without effect where idle workers do not spin (spin_ns is 0). From anywhere.
  void expect_soon(std::uint64_t duration_ns) noexcept;

  /// Threads may have a Preemption of their own.
  [[nodiscard]] bool can_preempt() const noexcept;
  [[nodiscard]] std::uint32_t worker_count() const noexcept;
  [[nodiscard]] std::uint32_t live_thread_count() const noexcept;  // Spawned, adopted, not ended.
  [[nodiscard]] std::uint64_t now_ns() const noexcept;

  /// Time that worker has spent running threads since it started, for load measures. From anywhere.
  [[nodiscard]] std::uint64_t busy_ns(std::uint32_t worker) const noexcept;

  /// Whether that worker runs a thread now. A hint, from anywhere.
  [[nodiscard]] bool is_busy(std::uint32_t worker) const noexcept;

  [[nodiscard]] TeamState* state() const noexcept { return state_.get(); }  // For threads/ only.

 private:
  explicit Team(std::unique_ptr<TeamState> state) noexcept;
  std::unique_ptr<TeamState> state_;
};

/// Index of a worker in its team.
[[nodiscard]] std::uint32_t worker_index(const Worker& worker) noexcept;

/// Installs the handlers of SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT: a stack overflow is reported
/// with the name of the thread; all faults then reach `callback` (which may be null and must be
/// async-signal-safe) and then the default action. Process-wide, since signals are; the last call
/// counts.
void install_crash_handler(void (*callback)(const CrashInfo&)) noexcept;

/// The same report of a stack overflow, without more, and only for those of SIGSEGV and SIGBUS that
/// the program leaves to the system: in processes that belong to a program. Process-wide.
void report_stack_overflows() noexcept;

}  // namespace sterna::threads
