// A user thread: its options and its descriptor, which lies in the same iso-address slot as its
// stack.
//
// The descriptor is plain bytes: no vtable, no container, no kernel handle. The bytes of a thread
// that has left its processor (freeze()) may be copied to the same address in another node and go
// on there (Team::reinstall). All fields belong to threads/; other layers use `owner` and the
// functions below.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/priority.h"

namespace sterna::threads {

class Worker;
class Team;
struct Thread;
class WorkerSet;
struct KeyTable;
struct Seed;
struct SwitchHook;
struct Locals;

using Entry = void (*)(void*);

// With all that belongs to it a slot of the first class.
inline constexpr std::size_t kDefaultStackBytes = 60 * 1024;
inline constexpr std::size_t kNameBytes = 32;
inline constexpr std::uint32_t kAnyWorker = 0xffff'ffff;

/// How one thread is preempted: not at all, as the others of its team, or in a mode of its own.
enum class Preemption : std::uint8_t { none, as_team, slice, communication };

struct ThreadOptions {
  const char* name = nullptr;                    // Copied; the first kNameBytes - 1 bytes count.
  std::size_t stack_bytes = kDefaultStackBytes;  // Least usable stack; larger under sanitizers.
  std::uint32_t worker = kAnyWorker;  // Starts on this worker; with `bound` it also stays there.
  std::uint32_t worker_count = 1;     // With `bound`: it stays on [worker, worker + worker_count).
  std::uint8_t priority = kPriorityNormal;  // On a worker the higher ones run first.
  bool preemptible_around = true;  // Of one with an entity. False: what holds it forbids that.
  std::uint32_t guard_bytes = 0;   // Below the stack, beside the page that is always there.
  bool bound = false;              // Other workers do not steal it.
  bool detached = false;           // Nobody joins it.
  bool cancellable = false;        // cancel() ends its waits; costs it some ns a wait.
  bool held = false;               // Does not run before unhold(): control.h.
  bool accounted = false;          // Its processor time is measured: processor_ns().
  Preemption preemption = Preemption::as_team;  // preempt.h.
  bool is_user_code = false;                    // `entry` is code of the program: border.h.
  // False: inside a poll. If it would have to wait for the answer of another node, for addresses,
  // spawn() fails with timed_out.
  bool may_wait = true;
  void* owner = nullptr;   // For the layer that spawns it (a rank's context); see Thread::owner.
  void* entity = nullptr;  // Not null: Team's Dispatch schedules it (sched::Entity).
};

/// Memory for an adopted thread: [base, base + bytes) is its stack, `descriptor` the place that
/// threads::self() computes for every address of that stack (memory/rank_slot.h says where).
struct StackRegion {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  Thread* descriptor = nullptr;
};

/// The registers of a thread that does not run, but for those that the compiler saves on its stack:
/// context.h. They lie in the descriptor, whose line a switch needs anyway.
struct SavedContext {
  void* stack = nullptr;
  void* frame = nullptr;
  void* code = nullptr;
};

/// The saved state of C++ exceptions (the two words of __cxa_eh_globals) while the thread does not
/// run.
struct ExceptionState {
  void* caught = nullptr;
  std::uint64_t uncaught = 0;
};

/// What a thread does at its end if it has not taken it back; lies on its stack. See cancel.h.
struct Cleanup {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  Cleanup* outer = nullptr;
};

/// What a thread does while it does not run. `none`: it has ended, or was never started.
enum class Activity : std::uint8_t { none, ready, blocked };

/// Orders for whoever takes a thread from a private queue: bits.
enum class Hold : std::uint8_t {
  none = 0,
  wanted = 1,       // It stays off the processors: let it go.
  held = 2,         // That was done: it is in no queue; unhold() makes it runnable.
  recalled = 4,     // A kept thread goes back to Dispatch: kept.h.
  stopping = 8,     // It is inside hold(), among those that are to stop, and will: control.cc.
  restricted = 16,  // Where it may run has changed: worker_set.h.
  measured = 32,    // Its processor time is wanted, for a while: measure.h.
};
[[nodiscard]] constexpr Hold operator|(Hold a, Hold b) noexcept {
  return static_cast<Hold>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr Hold without(Hold word, Hold bits) noexcept {
  return static_cast<Hold>(static_cast<unsigned>(word) & ~static_cast<unsigned>(bits));
}
[[nodiscard]] constexpr bool has(Hold word, Hold bits) noexcept {
  return (static_cast<unsigned>(word) & static_cast<unsigned>(bits)) != 0;
}

struct alignas(64) Thread {
  // First line: what a switch touches. Written by the worker that runs the thread or, while it is
  // queued, by whoever holds the lock of that queue.
  SavedContext context;  // First: context.h. kernel_bound, or is_taken: `stack` is its Carrier.
  // Link of the one queue (run queue, inbox, wait list) that holds it.
  Thread* next = nullptr;
  std::atomic<Worker*> worker{nullptr};     // Where it runs or ran last: home of its wakes.
  std::atomic<std::uint64_t> wait_word{0};  // Tokens, signals and "parked"; see park.cc.
  // ThreadFlag; constant while runnable but for what is saved, kernel_bound, what kept.h says.
  std::uint32_t flags = 0;
  // errno while it does not run, with ThreadFlag::error_saved; else 0.
  int error_number = 0;
  // Relaxed, all three: readers who need more than a hint get there through a lock or an exchange.
  std::atomic<std::uint8_t> priority{kPriorityNormal};
  std::atomic<Hold> hold{Hold::none};
  std::atomic<Activity> activity{Activity::none};
  bool is_cancellable = false;  // Of the thread itself, as the next one.
  std::uint8_t end_flags = 0;   // EndFlag.
  // In the code of its program: border.h. Written by the thread; read by a handler on its stack.
  std::atomic<bool> in_user{false};
  // Goes on without a worker, which was taken from it: carrier.h has who writes.
  std::atomic<bool> is_taken{false};
  // If it is kernel-bound: in the handler of preempt.cc, from where it may go on an errand. Its
  // own.
  bool is_interrupted = false;

  // Second line: with the first, all that the birth and the end of a usual thread touch.
  std::atomic<std::uintptr_t> joiner{0};  // Who joins: a tagged Waiter; see life.cc.
  Team* team = nullptr;                   // Constant between reinstalls.
  Entry entry = nullptr;
  void* argument = nullptr;
  Seed* seeds = nullptr;  // The last that it has planted and not joined: seed.h. Its own.
  void* owner = nullptr;  // Of the layer that spawned it. Constant after start.
  std::atomic<std::uint64_t> id{0};           // Unique within its team, from 1. Relaxed.
  std::atomic<std::uint32_t> preempt_off{0};  // disable_preemption(), nested, and bits: preempt.h.
  std::atomic<bool> is_named{false};          // `name` is not empty. Relaxed, as that.
  std::uint8_t stack_class = 0;               // Of the pool its slot came from. Constant.

  // Third line: what belongs to the slot. With the first, what is touched to get or give back one.
  std::byte* stack_base = nullptr;
  std::size_t stack_bytes = 0;
  std::uintptr_t seed_floor = 0;    // Below this stack address seeds do not run inline. Constant.
  void* sanitizer_fiber = nullptr;  // TSan's fiber or ASan's fake stack; else valgrind's number.
  // Slots of the team, used or not. Guard: TeamState::slots_lock.
  Thread* slot_previous = nullptr;
  Thread* slot_next = nullptr;
  std::uint32_t guard_bytes = 0;  // Extra ones that are installed.
  std::uint32_t timer_index = 0;  // Place in the timer heap + 1; guard: lock of that heap.
  std::uint64_t deadline_ns = 0;  // Of the wait that is under way; guard: as timer_index.

  void* entity = nullptr;                 // sched's; null: the thread lives in private queues only.
  alignas(8) char name[kNameBytes] = {};  // Written and read as relaxed words: set_name().
  // Not 0: it left directly, and its thread pointer is to be loaded. direct.h. By who runs it.
  std::uintptr_t own_pointer = 0;
  std::atomic<std::uint32_t> on_processor{0};  // For Dispatch: 1 until its context is saved.
  std::atomic<std::uint64_t> cycles_run{0};    // Of completed turns; written by its worker.
  std::atomic<std::uint64_t> cycles_begin{0};  // Of the turn that runs now; 0: it does not run.
  ExceptionState exceptions;
  KeyTable* keys = nullptr;  // Thread-specific data, or null: sync/key.h. Node memory.
  // Of the thread itself, as the next four; what is set is named in end_flags, and null again at
  // its end.
  Cleanup* cleanup = nullptr;  // Innermost.
  char* error_text = nullptr;  // Of capi, or null. Node memory.
  void (*after_exit)(void*) = nullptr;
  void* after_exit_argument = nullptr;
  std::uint32_t worker_first = 0;  // With ThreadFlag::bound: where it may run.
  std::uint32_t worker_count = 0;
  // With ThreadFlag::assorted, or Hold::restricted: worker_set.h. Null: all.
  std::atomic<const WorkerSet*> workers{nullptr};  // Guard: as worker_first.
  std::atomic<const WorkerSet*> wanted_workers{nullptr};
  SwitchHook* switch_hooks = nullptr;  // With ThreadFlag::hooked; of the thread itself.
  Locals* locals = nullptr;            // With ThreadFlag::own_locals: locals.h. Constant.
};
static_assert(sizeof(Thread) <= 1024, "a descriptor fits the place that memory/ keeps for it");
static_assert(offsetof(Thread, context) == 0, "a context that begins finds its thread by it");
static_assert(offsetof(Thread, joiner) == 64 && offsetof(Thread, stack_base) == 128 &&
                  offsetof(Thread, entity) == 192,
              "three full lines");

namespace ThreadFlag {
inline constexpr std::uint32_t bound = 1;
inline constexpr std::uint32_t accounted = 2;
inline constexpr std::uint32_t adopted = 4;          // Its memory is not ours.
inline constexpr std::uint32_t exception_saved = 8;  // `exceptions` holds something.
inline constexpr std::uint32_t managed = 16;         // Waits in the queues of Dispatch.
inline constexpr std::uint32_t detached = 32;        // Nobody joins; set before it runs.
inline constexpr std::uint32_t cancellable = 64;     // Created so; see is_cancellable.
// Its switches and wake-ups are recorded; set before it runs. See traced.h.
inline constexpr std::uint32_t traced = 1 << 16;
inline constexpr std::uint32_t error_saved = 1 << 17;  // `error_number` is not 0.
inline constexpr std::uint32_t placed = 1 << 18;  // Has an entity: is managed, or kept. Constant.
inline constexpr std::uint32_t kept = 1 << 19;    // In private queues, for the time being: kept.h.
// Ready, and its registers are those of a kernel thread that waits to carry it on: carrier.h.
inline constexpr std::uint32_t kernel_bound = 1 << 20;
inline constexpr std::uint32_t user_code = 1 << 21;       // Its entry is code of the program.
inline constexpr std::uint32_t own_preemption = 1 << 22;  // It was born so: preempt.h.
inline constexpr std::uint32_t seed = 1 << 23;            // Runs a Seed, its argument; detached.
inline constexpr std::uint32_t hooked = 1 << 24;          // Has switch_hooks: switch_hook.h.
inline constexpr std::uint32_t assorted = 1 << 25;        // Runs on `workers` only; not `bound`.
inline constexpr std::uint32_t own_locals = 1 << 26;      // Its thread-local variables: locals.h.
inline constexpr std::uint32_t measured = 1 << 27;  // Accounted for as long as somebody looks.
}  // namespace ThreadFlag

namespace EndFlag {
inline constexpr std::uint8_t cancelled = 1;
inline constexpr std::uint8_t after_exit = 2;  // `after_exit` is called after the last switch.
inline constexpr std::uint8_t belongings = 4;  // Keys, cleanups or an error text were set.
inline constexpr std::uint8_t guarded = 8;     // `guard_bytes` are installed.
}  // namespace EndFlag

/// Name of a thread, or "thread <id>" when it has none: `buffer` keeps that text.
std::string_view display_name(const Thread& thread, char (&buffer)[kNameBytes]) noexcept;

/// Processor time of an accounted thread so far, its present turn included. From anywhere.
std::uint64_t processor_ns(const Thread& thread) noexcept;

/// Waits until `thread` has ended and has left its stack, then gives its slot back (an adopted
/// thread's memory goes back to its owner). Once per thread that is not detached. Callable from
/// kernel threads. A cancellation point. Switches.
void join(Thread& thread) noexcept;

/// Nobody will join: its slot is given back when it ends.
void detach(Thread& thread) noexcept;

/// How a join ended, or why it is refused.
enum class JoinOutcome : std::uint8_t {
  ended,
  cancelled,       // It has ended, by cancel().
  timed_out,       // It goes on, and may be joined again.
  joined_already,  // Or somebody is joining it.
  detached,
};
/// join() with a deadline (of the team's clock), which tells misuse apart. Switches.
[[nodiscard]] JoinOutcome try_join_until(Thread& thread, std::uint64_t deadline_ns) noexcept;
/// detach(); joined_already or detached: refused; else ended.
[[nodiscard]] JoinOutcome try_detach(Thread& thread) noexcept;

/// The bytes of a thread's stack: [base, base + bytes), and how many are in use while it does not
/// run (of the caller: now).
struct StackUse {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::size_t used_bytes = 0;
};
[[nodiscard]] StackUse stack_use(const Thread& thread) noexcept;

}  // namespace sterna::threads
