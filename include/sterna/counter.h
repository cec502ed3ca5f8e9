/* What happens at the switches of a thread: calls of its own, and counters of the processor.
 *
 * Kernels count events (instructions, cache misses...) by kernel thread; user threads share those.
 * So a thread that wants its own counts reads the counters of the kernel thread whenever it gets
 * and leaves one: sterna_counters does that, by a switch hook. Between sterna_start and
 * sterna_stop; not in mobile ranks (UNSUPPORTED). sterna_error_detail says why a call was refused.
 */
#ifndef STERNA_COUNTER_H
#define STERNA_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first three are the program's; NULL for what is not wanted. */
typedef struct sterna_switch_hook {
  void (*before)(void* argument); /* The thread is about to leave its processor, or has ended. */
  void (*after)(void* argument);  /* It goes on, perhaps on another one. */
  void* argument;
  void* opaque;
} sterna_switch_hook;

/* From now on the calling thread calls before(argument) as the last thing before it leaves its
 * processor, at its end too, and after(argument) as the first thing when it goes on: on its own
 * stack, or, when it is preempted, on that of signals. Several nest: before newest first, after
 * oldest first. The hook's memory stays until it is removed or the thread is joined. Threads
 * without hooks pay nothing for it. A hook runs in the scheduler, and, of a thread that is
 * preempted, in a handler of a signal: it must call nothing of Sterna, take no lock, allocate
 * nothing, and leave errno as it is. It may read clocks and counters, write memory, and make system
 * calls that do not wait. A region between sterna_blocking_begin and _end is no switch, but its end
 * may be one. Does not switch. Fails with UNSUPPORTED (kernel thread, mobile rank),
 * INVALID_ARGUMENT (NULL), BUSY (the thread has it). (PM2's marcel attributes fpreswitch and
 * fpostswitch.) */
sterna_status sterna_thread_add_switch_hook(sterna_switch_hook* hook) STERNA_NOEXCEPT;
/* Of the calling thread. Does not switch. Fails as above, and with NOT_FOUND. */
sterna_status sterna_thread_remove_switch_hook(sterna_switch_hook* hook) STERNA_NOEXCEPT;

/* What is counted, of code outside the kernel but where it says otherwise. The first six need
 * counters of the processor, which virtual machines often lack. */
typedef enum sterna_event {
  STERNA_EVENT_INSTRUCTIONS = 0,
  STERNA_EVENT_CYCLES = 1,
  STERNA_EVENT_CACHE_REFERENCES = 2, /* Of the last level. */
  STERNA_EVENT_CACHE_MISSES = 3,
  STERNA_EVENT_BRANCHES = 4,
  STERNA_EVENT_BRANCH_MISSES = 5,
  STERNA_EVENT_TASK_CLOCK = 6,  /* Nanoseconds on a processor, the kernel's part included. */
  STERNA_EVENT_PAGE_FAULTS = 7, /* Both kinds. */
  STERNA_EVENT_COUNT = 8
} sterna_event;

typedef struct sterna_counters sterna_counters; /* Opaque. */

/* Counters for `count` different events, which count nothing yet. Any thread; kernel threads make
 * them for others. Fails with INVALID_ARGUMENT, UNSUPPORTED (this machine does not count that),
 * REFUSED (the kernel forbids it: the setting perf_event_paranoid, a filter of system calls),
 * SYSTEM, OUT_OF_MEMORY; the text says which event, and what to do. */
sterna_status sterna_counters_create(const sterna_event* events, size_t count,
                                     sterna_counters** counters) STERNA_NOEXCEPT;
/* They count the calling user thread from now on, wherever it goes, on top of what they have; each
 * switch costs it a system call (some 100 ns) an event and direction. The kernel threads keep the
 * counter open. Fails with UNSUPPORTED (kernel thread, mobile rank), BUSY (they count already), or
 * as create. */
sterna_status sterna_counters_start(sterna_counters* counters) STERNA_NOEXCEPT;
/* By the thread that started them; values stay. Fails with REFUSED: they do not count it. */
sterna_status sterna_counters_stop(sterna_counters* counters) STERNA_NOEXCEPT;
/* As many values as events, in their order. By the thread they count: as of now; by others: as of
 * its last switch. If a kernel thread could not open its counter the turns there are missing:
 * TRUNCATED. */
sterna_status sterna_counters_read(sterna_counters* counters, uint64_t* values) STERNA_NOEXCEPT;
/* Back to 0. As read: by the thread they count, or while they do not count; else BUSY. */
sterna_status sterna_counters_reset(sterna_counters* counters) STERNA_NOEXCEPT;
/* After stop, or after the thread was joined; else BUSY. NULL: nothing. */
sterna_status sterna_counters_destroy(sterna_counters* counters) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_COUNTER_H */
