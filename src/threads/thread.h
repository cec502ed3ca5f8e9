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

namespace sterna::threads {

class Worker;
class Team;
struct Thread;

using Entry = void (*)(void*);

// The usable part of a slot of 64 KiB.
inline constexpr std::size_t kDefaultStackBytes = 60 * 1024;
inline constexpr std::size_t kNameBytes = 32;
inline constexpr std::uint32_t kAnyWorker = 0xffff'ffff;

struct ThreadOptions {
  const char* name = nullptr;                    // Copied; the first kNameBytes - 1 bytes count.
  std::size_t stack_bytes = kDefaultStackBytes;  // Least usable stack; larger under sanitizers.
  std::uint32_t worker = kAnyWorker;  // Starts on this worker; with `bound` it also stays there.
  bool bound = false;                 // Other workers do not steal it.
  bool detached = false;              // Nobody joins it.
  bool accounted = false;             // Its processor time is measured: processor_ns().
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

/// The saved state of C++ exceptions (the two words of __cxa_eh_globals) while the thread does not
/// run.
struct ExceptionState {
  void* caught = nullptr;
  std::uint64_t uncaught = 0;
};

struct alignas(64) Thread {
  // First line: what a switch touches. Written by the worker that runs the thread or, while it is
  // queued, by whoever holds the lock of that queue.
  void* context = nullptr;  // Stack pointer of the saved context; see context.h.
  // Link of the one queue (run queue, inbox, wait list) that holds it.
  Thread* next = nullptr;
  std::atomic<Worker*> worker{nullptr};     // Where it runs or ran last: home of its wakes.
  std::atomic<std::uint64_t> wait_word{0};  // Tokens, signals and "parked"; see park.cc.
  std::atomic<std::uintptr_t> joiner{0};    // Who joins: a tagged Waiter; see join.cc.
  // ThreadFlag; constant while runnable but for exception_saved.
  std::uint32_t flags = 0;
  std::uint32_t stack_class = 0;  // Of the pool its slot came from. Constant.
  Team* team = nullptr;           // Constant between reinstalls.

  // Second line and on.
  Entry entry = nullptr;
  void* argument = nullptr;
  void* owner = nullptr;   // Of the layer that spawned it. Constant after start.
  void* entity = nullptr;  // sched's; null: the thread lives in private queues only.
  ExceptionState exceptions;
  std::atomic<std::uint64_t> cycles_run{0};    // Of completed turns; written by its worker.
  std::atomic<std::uint64_t> cycles_begin{0};  // Of the turn that runs now; 0: it does not run.
  std::atomic<std::uint32_t> on_processor{0};  // For Dispatch: 1 until its context is saved.
  std::uint32_t timer_index = 0;  // Place in the timer heap + 1; guard: lock of that heap.
  std::uint64_t deadline_ns = 0;  // Of the wait that is under way; same guard.
  std::byte* stack_base = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_fiber = nullptr;  // TSan's fiber or ASan's fake stack; null else.
  void** keys = nullptr;            // Thread-specific data, or null: sync/key.h. Node memory.
  std::uint64_t id = 0;             // Unique within its team, from 1.
  char name[kNameBytes] = {};
};
static_assert(sizeof(Thread) <= 1024, "a descriptor fits the place that memory/ keeps for it");

namespace ThreadFlag {
inline constexpr std::uint32_t bound = 1;
inline constexpr std::uint32_t accounted = 2;
inline constexpr std::uint32_t adopted = 4;          // Its memory is not ours.
inline constexpr std::uint32_t exception_saved = 8;  // `exceptions` holds something.
inline constexpr std::uint32_t managed = 16;         // Has an entity: Dispatch schedules it.
inline constexpr std::uint32_t detached = 32;        // Nobody joins; set before it runs.
// Its switches and wake-ups are recorded; set before it runs. See traced.h.
inline constexpr std::uint32_t traced = 1 << 16;
}  // namespace ThreadFlag

/// Name of a thread, or "thread <id>" when it has none: `buffer` keeps that text.
std::string_view display_name(const Thread& thread, char (&buffer)[kNameBytes]) noexcept;

/// Processor time of an accounted thread so far, its present turn included. From anywhere.
std::uint64_t processor_ns(const Thread& thread) noexcept;

/// Waits until `thread` has ended and has left its stack, then gives its slot back (an adopted
/// thread's memory goes back to its owner). Once per thread that is not detached. Callable from
/// kernel threads. Switches.
void join(Thread& thread) noexcept;

/// Nobody will join: its slot is given back when it ends.
void detach(Thread& thread) noexcept;

}  // namespace sterna::threads
