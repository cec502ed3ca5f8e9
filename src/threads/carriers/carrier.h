// A carrier: a kernel thread that carries workers, one after the other. Internal to threads/.
//
// Usually a worker keeps its carrier for ever. It gets another one in three cases: its thread is
// preempted (preempt.h), its carrier sleeps in the kernel with the thread (take-over), or the next
// thread to run is one whose registers are still those of a carrier (kernel-bound). Then the
// carrier that has the worker fills in everything that changes (Worker::use), sets the word of the
// other one (A) and wakes it. The queue, the timers and the identity of the worker stay.
//
// Why the kernel thread of a preempted thread waits with it, rather than run another one: the
// thread may be anywhere in malloc, stdio or an unwinder, whose state belongs to the kernel thread.
// (Shiina, Iwasaki, Taura, Balaji: "Lightweight preemptive user-level threads", PPoPP 2021.)
//
// Each carrier has the idle context that its stack is. So the stacks of two carriers never mix, and
// each returns, at the end, from the function in which it began.
#pragma once

#include <atomic>
#include <optional>
#include <cstdint>
#include <ctime>

#include <pthread.h>

#include "base/cpu.h"
#include "base/result.h"
#include "threads/carriers/kernel_thread.h"
#include "threads/control/counters.h"
#include "threads/life/exceptions.h"
#include "threads/thread.h"

namespace sterna::threads {

class TeamState;
class Worker;

class alignas(kCacheLineBytes) Carrier {
 public:
  enum : std::uint32_t {
    kStarts,    // Its kernel thread is not there yet.
    kRuns,      // Has a worker.
    kSpare,     // Waits for one, and may be reserved.
    kReserved,  // Somebody will hand it one, or end it.
    kParked,    // Waits for one with its thread, in a handler or at the entry to the runtime.
    kEnds,
    kFailed,  // Its kernel thread could not be started: to be tried again.
    kErrand,  // Was parked; goes on without a worker: errand.cc.
    kMakes,   // Was spare; makes others, then is spare again: spares.cc.
  };

  explicit Carrier(TeamState& its_team) noexcept : team{its_team} {}
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// The life of a carrier, on its own stack: until the team ends.
  void run() noexcept;

  /// It has no worker; ends if the team is stopped. By itself, or by who reserved it.
  void become_spare() noexcept;
  /// kSpare to kReserved. From anywhere.
  [[nodiscard]] bool try_reserve() noexcept;
  /// Gives it `its_worker`, whose fields are filled in, and wakes it.
  void give(Worker& its_worker) noexcept;
  /// A spare or reserved one ends.
  void end() noexcept;
  /// Until somebody gives it a worker, on any stack and thread pointer of it, or lets it go on
  /// without (Thread::is_taken); false: the team ends.
  bool await_worker() noexcept;

  TeamState& team;
  Thread idle;
  // Constant while it runs, as the next ones.
  void* thread_pointer = nullptr;
  ExceptionGlobals* exceptions = nullptr;
  int* error_number = nullptr;
  void* signal_stack = nullptr;
  clockid_t processor_clock = 0;
  EventFiles event_files;         // Of threads that count what they do: counters.h.
  std::atomic<int> kernel_id{0};  // For signals; 0: not there yet.
  pthread_t kernel_thread{};
  // Where it is bound, kAnyWorker: nowhere, or to those of all enabled workers. Written by who
  // gives it a worker, or takes the processor from that; relaxed: a late look costs a binding.
  std::atomic<std::uint32_t> processor{kAnyWorker};
  // The thread that goes on without a worker on it; guard: a claim, then the thread itself.
  std::atomic<Thread*> taken{nullptr};

  // Written by who gives it one, before A.
  std::atomic<Worker*> worker{nullptr};
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> word{kSpare};
};

/// Binds its kernel thread to what its worker has now, as far as the system lets us: a refusal
/// costs speed, no more. From anywhere.
void bind_carrier(const Worker& worker, Carrier& carrier) noexcept;

/// The calling kernel thread, which has no worker, may use all processors of the team: those of its
/// enabled workers, or, if these are not bound, those of who opened it. A new kernel thread would
/// have those of its maker, which may be bound to one. A refusal costs speed, no more.
void use_processors_of(const TeamState& team) noexcept;
/// Where a new kernel thread of that worker is to run. None: anywhere.
std::optional<ProcessorMask> first_processors(const Worker& worker) noexcept;

/// Starts the kernel thread of a carrier.
Result<> start_carrier(Carrier& carrier) noexcept;

/// A spare carrier that is reserved for the caller, a new one if there is none. Null: there may be
/// no more (TeamOptions::carriers_max), or the team ends. Not in a handler of a signal, nor by the
/// ticker: it may wait for memory.
[[nodiscard]] Carrier* reserve_carrier(TeamState& team) noexcept;
/// The same; null: there is none now.
[[nodiscard]] Carrier* take_spare(TeamState& team) noexcept;

/// As many as a tick may want, as far as there may be more; the caller is, or is not, one of them
/// afterwards. Waits for memory.
void make_spares(TeamState& team, bool is_one) noexcept;
/// Has a spare one make others, if they are few and nobody does. By the ticker; does not wait.
void ask_for_spares(TeamState& team) noexcept;

/// The kernel thread that calls becomes that carrier, runs, and is none any more.
void carry_here(Carrier& carrier) noexcept;

/// Takes the worker from its thread, which is in the code of its program, and from its carrier, and
/// gives it to a spare one. False: the thread was in the runtime, or there is no spare one, or
/// somebody else has the lock of the worker; nothing happened. By one kernel thread of the team at
/// a time (the ticker).
[[nodiscard]] bool try_take_over(Worker& worker) noexcept;

/// The current thread, in the runtime, is ready again but has no worker; returns when it has one.
void come_back(Thread& me) noexcept;

/// The calling thread, which is about to sleep in the kernel, lets its worker go on without it
/// until leave_blocking(). Not for long computations: they would compete with the worker for its
/// processor. False: it keeps the worker (a kernel thread calls, or there may be no more kernel
/// threads), which does no harm. errno and all else that belongs to the kernel thread are kept.
/// What is between the two must not call the runtime. Does not switch.
bool enter_blocking() noexcept;
/// Switches, if the worker was let go.
void leave_blocking() noexcept;

}  // namespace sterna::threads
