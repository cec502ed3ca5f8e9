/* Waiting for each other: mutex, condition, semaphore, barrier, once.
 *
 * User threads and kernel threads alike, in any mixture; what is needed is memory of the program,
 * initialised by its initialiser or by its _init call, never copied, and dropped when nobody uses
 * it. There is nothing to destroy. "Switches": a user thread may go on on another kernel thread.
 * All calls fail with INVALID_ARGUMENT for NULL.
 */
#ifndef STERNA_SYNC_H
#define STERNA_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_mutex {
  uint64_t opaque[5];
} sterna_mutex;
#define STERNA_MUTEX_INIT {{0, 0, 0, 0, 0}}

typedef struct sterna_condition {
  uint64_t opaque[4];
} sterna_condition;
#define STERNA_CONDITION_INIT {{0, 0, 0, 0}}

typedef struct sterna_semaphore { /* As STERNA_SEMAPHORE_INIT it has no unit. */
  uint64_t opaque[5];
} sterna_semaphore;
#define STERNA_SEMAPHORE_INIT {{0, 0, 0, 0, 0}}

typedef struct sterna_barrier { /* Needs sterna_barrier_init. */
  uint64_t opaque[5];
} sterna_barrier;

typedef struct sterna_once {
  uint64_t opaque[5];
} sterna_once;
#define STERNA_ONCE_INIT {{0, 0, 0, 0, 0}}

/* Not recursive: DEADLOCK if the caller holds it. Switches. */
sterna_status sterna_mutex_lock(sterna_mutex* mutex) STERNA_NOEXCEPT;
/* TIMED_OUT; a timeout of 0 tries once. Switches. */
sterna_status sterna_mutex_lock_for(sterna_mutex* mutex, uint64_t timeout_ns) STERNA_NOEXCEPT;
/* BUSY: somebody holds it. Does not switch. */
sterna_status sterna_mutex_try_lock(sterna_mutex* mutex) STERNA_NOEXCEPT;
/* NOT_OWNER: the caller does not hold it. Does not switch. */
sterna_status sterna_mutex_unlock(sterna_mutex* mutex) STERNA_NOEXCEPT;

/* Gives the mutex back, waits for a signal, takes the mutex again. May also return without a
 * signal: test the condition again. NOT_OWNER; TIMED_OUT, with the mutex held as well. Switches. */
sterna_status sterna_condition_wait(sterna_condition* condition, sterna_mutex* mutex,
                                    uint64_t timeout_ns) STERNA_NOEXCEPT;
/* Wakes one waiter, or all. Does not switch. */
sterna_status sterna_condition_signal(sterna_condition* condition) STERNA_NOEXCEPT;
sterna_status sterna_condition_broadcast(sterna_condition* condition) STERNA_NOEXCEPT;

sterna_status sterna_semaphore_init(sterna_semaphore* semaphore, uint32_t count) STERNA_NOEXCEPT;
/* Takes a unit; waits while there is none. TIMED_OUT. Switches. */
sterna_status sterna_semaphore_acquire(sterna_semaphore* semaphore,
                                       uint64_t timeout_ns) STERNA_NOEXCEPT;
/* BUSY: there is none. Does not switch. */
sterna_status sterna_semaphore_try_acquire(sterna_semaphore* semaphore) STERNA_NOEXCEPT;
/* Does not switch. */
sterna_status sterna_semaphore_release(sterna_semaphore* semaphore,
                                       uint32_t count) STERNA_NOEXCEPT;

/* For `count` participants; INVALID_ARGUMENT: 0. */
sterna_status sterna_barrier_init(sterna_barrier* barrier, uint32_t count) STERNA_NOEXCEPT;
/* Waits until all have come; can be used again at once. *is_last (may be NULL) is 1 for one of
 * them. Switches. */
sterna_status sterna_barrier_wait(sterna_barrier* barrier, int* is_last) STERNA_NOEXCEPT;

/* The first caller runs function(argument); all return after that has returned. Switches. */
sterna_status sterna_once_call(sterna_once* once, void (*function)(void* argument),
                               void* argument) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_SYNC_H */
