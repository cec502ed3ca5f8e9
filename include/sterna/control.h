/* What threads do to each other: cancel, freeze, priorities, places, the list of threads.
 *
 * Between sterna_start and sterna_stop; not in mobile ranks (UNSUPPORTED). A handle of a thread
 * that was joined, or of a detached one that has ended, is refused with INVALID_ARGUMENT;
 * sterna_error_detail says which rule was broken.
 */
#ifndef STERNA_CONTROL_H
#define STERNA_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the thread to end at its next cancellation point: park, sleep, join, condition, semaphore,
 * rwlock, futex, the calls of io.h, test_cancel; never in between, and not in a mutex or a barrier,
 * as in POSIX. One that waits there already ends at once. Cleanups run, then destructors of keys;
 * frames of C++ are not unwound. Any thread; does not switch. Fails with REFUSED: it was not
 * created cancellable. */
sterna_status sterna_thread_cancel(sterna_thread* thread) STERNA_NOEXCEPT;

/* Ends the calling thread if it is cancelled. Nothing on a kernel thread. */
void sterna_thread_test_cancel(void) STERNA_NOEXCEPT;

/* Whether cancellation counts for the calling thread from now on; an order that came before is
 * kept. *before (may be NULL) is what was set. UNSUPPORTED on a kernel thread. */
sterna_status sterna_thread_set_cancellable(int is_cancellable, int* before) STERNA_NOEXCEPT;

/* Memory for one cleanup, which stays until that is popped or has run: on the stack of its thread in
 * a function that pops it before it returns, the thread's own function too. */
typedef struct sterna_cleanup {
  void* opaque[3];
} sterna_cleanup;

/* function(argument) runs when the calling thread ends, in whatever way, unless it is popped
 * before: innermost first. UNSUPPORTED on a kernel thread. */
sterna_status sterna_thread_cleanup_push(sterna_cleanup* cleanup, void (*function)(void* argument),
                                         void* argument) STERNA_NOEXCEPT;
/* Takes the innermost away, and runs it with `execute`. NOT_FOUND: there is none. */
sterna_status sterna_thread_cleanup_pop(int execute) STERNA_NOEXCEPT;

/* function(argument) is called after the calling thread has left its stack, before who joins it
 * goes on; it must not wait. One per thread; NULL: none. UNSUPPORTED on a kernel thread. */
sterna_status sterna_thread_after_exit(void (*function)(void* argument),
                                       void* argument) STERNA_NOEXCEPT;

/* Keeps the threads off the processors: one that runs stops at its next call that may switch, one
 * that waits stops when its wait is over. Returns when none of them runs; TIMED_OUT: some still do,
 * and stop later. The caller may be among them, and returns when it is unfrozen. Any thread, kernel
 * threads too. Switches. */
sterna_status sterna_thread_freeze(sterna_thread* const* threads, size_t count,
                                   uint64_t timeout_ns) STERNA_NOEXCEPT;
/* Lets one of them go on. Does not switch. */
sterna_status sterna_thread_unfreeze(sterna_thread* thread) STERNA_NOEXCEPT;

/* Stops the scheduling of this node: no user thread of the process runs but the caller, those to
 * come included, until unfreeze; a kernel thread that calls stops them all. One that runs stops at
 * its next call that may switch (with the setting preemption, at a tick), one inside a call that
 * blocks in the kernel when it returns. Returns when none runs; TIMED_OUT: some still do, and stop
 * later (unfreeze takes that back too). Messages go on to be received and sent, and calls of other
 * nodes come in, but what a thread is to do for them waits. So the caller must not wait for what
 * another thread would do. Kernel threads of the program are not stopped. With preemption, a thread
 * that is stopped may hold a lock of a library. One caller at a time; its end, and sterna_stop,
 * unfreeze. Any thread, kernel threads too. Switches. Fails with TIMED_OUT, BUSY (it is frozen),
 * NOT_STARTED, UNSUPPORTED. (PM2's marcel_freeze_sched.) */
sterna_status sterna_scheduling_freeze(uint64_t timeout_ns) STERNA_NOEXCEPT;
/* All go on. Any thread that runs. Does not switch. Fails with REFUSED: nothing is frozen;
 * NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_scheduling_unfreeze(void) STERNA_NOEXCEPT;

/* STERNA_PRIORITY_IDLE to STERNA_PRIORITY_MAX. On a worker a thread runs only while none of a
 * higher priority waits there; idle workers help whatever the priority. Does not switch. */
sterna_status sterna_thread_set_priority(sterna_thread* thread, uint32_t priority) STERNA_NOEXCEPT;
sterna_status sterna_thread_priority(const sterna_thread* thread,
                                     uint32_t* priority) STERNA_NOEXCEPT;

/* The calling thread is not preempted until the matching enable; they nest. In mobile ranks too.
 * Without effect while the setting preemption is none. enable gives way at once to those who have
 * waited; switches. */
void sterna_preemption_disable(void) STERNA_NOEXCEPT;
/* REFUSED: preemption was not disabled. */
sterna_status sterna_preemption_enable(void) STERNA_NOEXCEPT;

/* How any thread is preempted, beside what its own calls of the two say, from any thread:
 * STERNA_PREEMPTION_... (as preemption of its options). It counts from the next tick on; one that
 * forbids it for itself is not preempted after this call. Does not switch, but one that allows it
 * for itself gives way at once. Fails with INVALID_ARGUMENT, UNSUPPORTED. */
sterna_status sterna_thread_set_preemption(sterna_thread* thread, uint32_t mode) STERNA_NOEXCEPT;
/* What options, set_preemption and the bubbles around it (sterna_bubble_set_preemptible) say, not
 * what its own calls of disable do. */
sterna_status sterna_thread_preemption(const sterna_thread* thread, uint32_t* mode) STERNA_NOEXCEPT;

/* Between the two the caller may sleep in the kernel (read, accept, a lock of another library) and
 * the others of its worker go on, at once, on another kernel thread; errno and thread-local
 * variables keep their values. Not for long computations. BUSY: there may be no more kernel
 * threads; the calls are right then, too, but hold the others up. Nothing on kernel threads. With
 * the setting take_over, which is on for programs with threads of their own, the same happens
 * without these calls, after two ticks. begin does not
 * switch, end does. UNSUPPORTED in mobile ranks. */
sterna_status sterna_blocking_begin(void) STERNA_NOEXCEPT;
void sterna_blocking_end(void) STERNA_NOEXCEPT;

/* The processor of a worker is taken away while the program runs (disable), or comes back (enable):
 * the worker leaves it, and its threads go to the others, one that runs after
 * some of its calls that may switch. Bubbles are placed anew. A thread that
 * may run on that worker only (is_bound, a place without another one) goes on nearby: on the
 * processors of the others, or, in a bubble, at the nearest place around its own; it returns with
 * the processor. Any thread, kernel threads too. Fails with INVALID_ARGUMENT, REFUSED (the last
 * one that is enabled), NOT_STARTED, UNSUPPORTED. Does not switch. */
sterna_status sterna_worker_disable(uint32_t worker) STERNA_NOEXCEPT;
sterna_status sterna_worker_enable(uint32_t worker) STERNA_NOEXCEPT;
/* 1: it is enabled; 0: not, or there is no such worker. */
int sterna_worker_is_enabled(uint32_t worker) STERNA_NOEXCEPT;

/* Does that for all workers: enabled are those whose processors the process may use now, as taskset
 * -ap, cpusets and hot removal leave them (of its initial thread). If those are none of its own all
 * stay as they are. *changed (may be NULL): how many were enabled or disabled. The setting
 * follow_processors calls it now and then. Fails with NOT_STARTED, UNSUPPORTED, SYSTEM. */
sterna_status sterna_workers_follow(uint32_t* changed) STERNA_NOEXCEPT;

/* Gives the processor to that thread if it is ready; else as sterna_thread_yield, and BUSY.
 * Switches. */
sterna_status sterna_thread_yield_to(sterna_thread* thread) STERNA_NOEXCEPT;

/* The calling thread stays at that place (sterna_thread_options.place) from now on. Switches. Fails
 * with UNSUPPORTED (kernel thread, thread of a bubble), INVALID_ARGUMENT, NOT_FOUND. */
sterna_status sterna_thread_stay_at(const char* place) STERNA_NOEXCEPT;

/* The thread runs on these workers, each of which is a processor, and on no others: bit i % 64 of
 * words[i / 64] is worker i, and `count` words follow each other. Any set, not only a place; it
 * takes the place of is_bound, `place` and stay_at. words NULL and count 0: on all. One that runs
 * changes at its next call that may switch, one that waits for a processor at once, one that sleeps
 * when it goes on, the caller before this returns; for a thread from its begin: is_frozen in its
 * options. Later orders count. If all its workers are disabled (sterna_worker_disable) it goes on,
 * as what is bound does, as one of them, on the processors of the others. A thread of a bubble
 * stays at a place (held.h): the largest one with workers of the set only, within those that the
 * bubbles around it do not leave. Any thread, kernel threads too. Switches if it is the caller.
 * Fails with INVALID_ARGUMENT (an empty set, or a worker that there is not), REFUSED (all of the
 * set are disabled; no worker of it is where a bubble around the thread stays), UNSUPPORTED (a
 * thread of filiation that is not the caller), OUT_OF_MEMORY. (pthread_setaffinity_np; PM2's
 * marcel_apply_vpset.) */
sterna_status sterna_thread_set_workers(sterna_thread* thread, const uint64_t* words,
                                        size_t count) STERNA_NOEXCEPT;
/* Where it may run, as ordered last: `count` words are written. TRUNCATED: it has workers beyond
 * them. Any thread; does not switch. */
sterna_status sterna_thread_workers(const sterna_thread* thread, uint64_t* words,
                                    size_t count) STERNA_NOEXCEPT;

typedef enum sterna_thread_state {
  STERNA_THREAD_RUNNING = 0,
  STERNA_THREAD_READY = 1,
  STERNA_THREAD_BLOCKED = 2,
  STERNA_THREAD_FROZEN = 3
} sterna_thread_state;

typedef struct sterna_thread_info {
  sterna_thread* thread;
  uint64_t number; /* Unique in this process. */
  sterna_thread_state state;
  uint32_t priority;
  uint32_t worker; /* Where it runs, or ran last. */
  uint8_t is_bound;
  uint8_t is_detached;
  uint8_t is_in_bubble;
  uint8_t is_migratable; /* As its options say. */
  char name[32];
} sterna_thread_info;

/* The threads that have not ended: writes up to `capacity` of them, and to *count how many there
 * are. Each entry was true at one moment, not all at the same. Any thread. */
sterna_status sterna_thread_list(sterna_thread_info* infos, size_t capacity,
                                 size_t* count) STERNA_NOEXCEPT;

/* Where the stack of the thread is, and how much of it is in use (as of its last switch, or now for
 * the calling one). Each pointer may be NULL. */
sterna_status sterna_thread_stack(const sterna_thread* thread, void** base, size_t* bytes,
                                  size_t* used_bytes) STERNA_NOEXCEPT;

/* Where errno of the calling thread is now. Each user thread has its own errno, kept across
 * switches; but compilers keep the address that errno had before a call that switches. After such a
 * call use *sterna_errno(). */
int* sterna_errno(void) STERNA_NOEXCEPT;

/* Calls at a time. */
typedef struct sterna_timer { /* Needs sterna_timer_init. */
  uint64_t opaque[6];
} sterna_timer;

/* function(argument) is called, once or every `period_ns` (0: once), by a user thread of the
 * highest priority: it may wait, but holds up other timers. Calls that are late are made up for, in
 * no more than half of the time of that thread's worker. */
sterna_status sterna_timer_init(sterna_timer* timer, void (*function)(void* argument),
                                void* argument, uint64_t period_ns) STERNA_NOEXCEPT;
/* First in `delay_ns`; changes it if it is set. The memory must stay until the last call has begun
 * or it is cancelled. Any thread. Switches. Fails with OUT_OF_MEMORY, NOT_STARTED. */
sterna_status sterna_timer_set(sterna_timer* timer, uint64_t delay_ns) STERNA_NOEXCEPT;
/* No call begins after it and none is under way, unless that is the caller. NOT_FOUND: it was not
 * set. sterna_stop, once no other thread of the node is left, cancels those that are set: they have
 * no end. Switches. */
sterna_status sterna_timer_cancel(sterna_timer* timer) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_CONTROL_H */
