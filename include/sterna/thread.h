/* User threads: many, cheap, scheduled over the workers of a node.
 *
 * A switch between them costs tens of nanoseconds. They must not use thread-local variables across
 * a call that switches, but for threads with has_own_locals: a thread may go on on another kernel
 * thread. Between sterna_start and
 * sterna_stop; mobile ranks are threads themselves and create none (UNSUPPORTED).
 */
#ifndef STERNA_THREAD_H
#define STERNA_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_thread sterna_thread; /* Opaque. */
typedef void (*sterna_thread_function)(void* argument);

#define STERNA_ANY_WORKER UINT32_MAX

/* Fill it with STERNA_THREAD_OPTIONS_DEFAULT, then set what you need. */
typedef struct sterna_thread_options {
  size_t size_bytes;      /* sizeof(sterna_thread_options), which says the caller's version. */
  const char* name;       /* Copied; the first 31 bytes count. NULL: none. */
  size_t stack_bytes;     /* Least usable stack, up to 2 GiB; 0: 60 KiB. */
  uint32_t worker;        /* Where it starts: below sterna_worker_count(), or STERNA_ANY_WORKER. */
  uint8_t is_bound;       /* 1: it stays on that worker. */
  uint8_t is_detached;    /* 1: nobody joins it. */
  uint8_t is_cancellable; /* 1: sterna_thread_cancel ends its waits (control.h). */
  uint8_t is_frozen;      /* 1: it does not run before sterna_thread_unfreeze (control.h). */
  uint32_t guard_bytes;   /* More that traps below the stack, whole pages; one is always there. */
  uint32_t priority;      /* STERNA_PRIORITY_...: control.h. */
  const char* place;      /* It stays there: "machine:0", "package:1", "numa:0", "l3:0", "l2:0",
                           * "core:3", "pu:7", counted from left to right. NULL: anywhere. */
  uint32_t preemption;    /* STERNA_PREEMPTION_...: how others take its worker from it. */
  uint32_t load; /* How much work it has, for policies, which place threads of bubbles; 0: 1. */
  struct sterna_bubble* bubble; /* It belongs to this bubble and starts with it: see below. NULL:
                                 * none. */
  void* stack; /* Memory of sterna_stack_create that is its stack, the caller's again after the
                * join; stack_bytes does not count then. NULL: the runtime's own. */
  uint32_t auto_bubbles;  /* STERNA_AUTO_BUBBLES_...: whether threads that it creates belong to a
                           * bubble of their own, as children of one parent (bubble.h). */
  uint8_t has_own_locals; /* 1: thread-local variables of its own, see below. 0: those of its
                           * kernel thread, unless the setting own_locals is on. */
  uint8_t is_migratable;  /* 1: its program says that it may go to another node. Stated and shown
                           * (sterna_thread_info); threads of a program have nowhere to go, and
                           * ranks say it by sterna_set_migratable. */
  uint16_t reserved;      /* 0. */
} sterna_thread_options;

/* A thread of a bubble is a thread as any other, and all options hold. It starts when the outermost
 * bubble is submitted; at once, where its bubble is, if that runs (bubble.h, add_thread, says who
 * may call then).
 *  - With `thread` it is made at once, with its stack, and has a handle that is the caller's: to
 *    join or detach once, before or after its bubble is joined, which waits for it but does not
 *    free it. Before it starts, all of control.h and held.h counts for it, a join waits, and
 *    sterna_thread_list does not show it. If its bubble is destroyed instead it has ended without
 *    having run: its join says CANCELLED.
 *  - Without, it is its bubble's, made when it starts and freed by sterna_bubble_join, which it is
 *    joined by; with is_detached it is freed when it ends. sterna_bubble_join waits for both.
 *  - A priority other than NORMAL is its own; with NORMAL it has that of its bubble.
 *  - `worker` is where it begins; with is_bound it stays on that worker's processor (REFUSED if
 *    several workers share that: a thread of a bubble has whole processors).
 *  - is_frozen: it is submitted with the others, and does not run before sterna_thread_unfreeze. */

/* A thread with has_own_locals has a copy of each thread-local variable (_Thread_local, __thread,
 * thread_local of C++, errno, those of libraries and of libc) for its life, as Marcel had: it may
 * keep their addresses, and is not disturbed by whoever has the worker before or after it. What the
 * system calls the current thread (pthread_self, keys of pthreads, who holds a recursive mutex of
 * pthreads or a lock of stdio, the locale of uselocale) is its own, too. They begin with their
 * initial values. Its end, before a join returns, runs cleanups and the destructors of Sterna's
 * keys on the thread, then those of thread_local objects and of keys of pthreads, on a kernel
 * thread (sterna_thread_self is NULL there).
 *
 * It costs a kernel thread that sleeps beside it: some tens of microseconds for its creation and
 * its end, the load of a register in each switch to and from it (13 ns; a system call where the
 * processor or the kernel has no instruction for it), nothing elsewhere. So it is for some hundreds
 * of threads that run code with such variables. pthread_exit, pthread_cancel, and signals, affinity
 * and clocks asked for by pthread_self() concern that kernel thread, not this one: not for its use.
 * A function of sterna_thread_after_exit, which runs beside all threads, sees those of any. */

/* How a thread is preempted (paper 002, 1.4). With a mode of its own it is looked at every few
 * milliseconds, whatever the settings preemption and slice say for the others; the team must be
 * able to take workers over (settings take_over, preemption), else such a mode is UNSUPPORTED. */
#define STERNA_PREEMPTION_NONE 0u  /* It keeps its worker until it makes a call. */
#define STERNA_PREEMPTION_JOB 1u   /* As the setting preemption says. The default. */
#define STERNA_PREEMPTION_SLICE 2u /* Gives way to its equals after its time slice. */
/* To threads of a higher class only, and is the next to run then: for threads that compute. */
#define STERNA_PREEMPTION_COMMUNICATION 3u
#define STERNA_PREEMPTION_MAX 3u

/* As for its creator; if that is a kernel thread, as the setting auto_bubbles says. */
#define STERNA_AUTO_BUBBLES_INHERIT 0u
#define STERNA_AUTO_BUBBLES_OFF 1u
#define STERNA_AUTO_BUBBLES_FILIATION 2u

/* Priorities, in classes: on a worker a thread runs only while none of a higher one waits there.
 * Levels are ranks, not shares: with equal ones turns are equal, a lower one has to wait for as
 * long as there is a higher one. A thread that must not run at all is frozen (is_frozen,
 * sterna_thread_freeze), whatever its priority. */
#define STERNA_PRIORITY_IDLE 0u       /* When nothing else is to be done. */
#define STERNA_PRIORITY_LOW_BATCH 1u  /* Behind other batch work. */
#define STERNA_PRIORITY_BATCH 2u      /* Behind what somebody waits for. */
#define STERNA_PRIORITY_NORMAL 11u    /* The default, and the cheapest to switch. */
#define STERNA_PRIORITY_REAL_TIME 20u /* To 23: urgent, in four levels. */
#define STERNA_PRIORITY_SYSTEM 24u /* Before everything: where timers run. For short work only. */
#define STERNA_PRIORITY_MAX 24u

/* The levels of the normal class, as nice(2) counts: STERNA_PRIORITY_NICE(-8), the first, to
 * STERNA_PRIORITY_NICE(8), the last; 0 is NORMAL, and what is beyond counts as the nearest, as
 * there. Among themselves they do not interrupt each other: which of them is next is asked where
 * somebody gives way, or its slice (setting preemption) is over. */
#define STERNA_NICE_MAX 8
#define STERNA_PRIORITY_NICE(nice)                                \
  ((uint32_t)(11 - ((nice) < -STERNA_NICE_MAX  ? -STERNA_NICE_MAX \
                    : (nice) > STERNA_NICE_MAX ? STERNA_NICE_MAX  \
                                               : (nice))))

#define STERNA_THREAD_OPTIONS_DEFAULT                                                        \
  {                                                                                          \
    sizeof(sterna_thread_options), NULL, 0, STERNA_ANY_WORKER, 0, 0, 0, 0, 0,                \
        STERNA_PRIORITY_NORMAL, NULL, 1, 0, NULL, NULL, STERNA_AUTO_BUBBLES_INHERIT, 0, 0, 0 \
  }

/* Starts a thread that calls function(argument). *thread is valid until join, or, for a detached
 * one, until it ends; `thread` may be NULL then, or with `bubble`. `options` may be NULL. Any
 * thread, kernel threads too; does not switch. Fails with INVALID_ARGUMENT, OUT_OF_MEMORY,
 * NOT_STARTED, UNSUPPORTED, SYSTEM (has_own_locals: the system gives no more kernel threads),
 * NOT_FOUND (the place), REFUSED, BUSY (the stack is in use; the bubble has ended). */
sterna_status sterna_thread_create(const sterna_thread_options* options,
                                   sterna_thread_function function, void* argument,
                                   sterna_thread** thread) STERNA_NOEXCEPT;

/* Memory for stacks that the program owns: *stack is the lowest address, *bytes (at least what was
 * asked for) the size; a thread at a time may have it. A thread is found from its stack pointer, so
 * other memory will not do. Any thread, kernel threads too; may switch. Fails with
 * INVALID_ARGUMENT, OUT_OF_MEMORY, NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_stack_create(size_t bytes, void** stack, size_t* size) STERNA_NOEXCEPT;
/* Before sterna_stop. BUSY: a thread that was not joined has it. INVALID_ARGUMENT: no such stack,
 * or destroyed before. */
sterna_status sterna_stack_destroy(void* stack) STERNA_NOEXCEPT;

/* Waits until the thread has ended, then frees it: once per thread that is not detached. Any
 * thread, kernel threads too. A cancellation point. Switches. Returns CANCELLED for a thread that
 * was cancelled, which is freed as well. Fails with DEADLOCK (itself), INVALID_ARGUMENT (NULL,
 * detached, joined before, of a bubble and created without a handle), BUSY (somebody is joining
 * it). */
sterna_status sterna_thread_join(sterna_thread* thread) STERNA_NOEXCEPT;
/* The same, for so long at most: TIMED_OUT, and it may be joined again. */
sterna_status sterna_thread_join_for(sterna_thread* thread, uint64_t timeout_ns) STERNA_NOEXCEPT;

/* Nobody will join: the thread is freed when it ends. Any thread; does not switch. Fails as join.
 */
sterna_status sterna_thread_detach(sterna_thread* thread) STERNA_NOEXCEPT;

/* Ends the calling thread, as if its function returned: cleanups run, then the destructors of keys.
 * Returns only if it fails: UNSUPPORTED on a kernel thread and in a rank. Frames of C++ are not
 * unwound. */
sterna_status sterna_thread_exit(void) STERNA_NOEXCEPT;

/* The calling user thread; NULL on a kernel thread. */
sterna_thread* sterna_thread_self(void) STERNA_NOEXCEPT;

/* Lets other threads go first. On a kernel thread: sched_yield. Switches. Fails with DEADLOCK, as
 * all that switches, inside a quick service (rpc.h) and the callback of a message of a program with
 * workers. */
sterna_status sterna_thread_yield(void) STERNA_NOEXCEPT;

/* Sleeps for at least so long; other threads run. Kernel threads too. Switches. DEADLOCK. */
sterna_status sterna_thread_sleep(uint64_t duration_ns) STERNA_NOEXCEPT;

/* Writes the name (or "thread <number>") and a 0 byte, as much as fits. Any thread; the thread has
 * not ended. Fails with INVALID_ARGUMENT, or TRUNCATED. */
sterna_status sterna_thread_name(const sterna_thread* thread, char* buffer,
                                 size_t bytes) STERNA_NOEXCEPT;

/* Waits for the token of the calling thread and takes it; may also return without it, so test what
 * you wait for again. A thread has at most one token. Switches. Fails with UNSUPPORTED on a kernel
 * thread, TIMED_OUT. */
sterna_status sterna_thread_park(uint64_t timeout_ns) STERNA_NOEXCEPT;

/* Gives the thread, which has not ended, its token. Any thread, kernel threads too; does not
 * switch. Fails with INVALID_ARGUMENT (NULL). */
sterna_status sterna_thread_unpark(sterna_thread* thread) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_THREAD_H */
