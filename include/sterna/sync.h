/* Waiting for each other: mutex, condition, semaphore, barrier, once, rwlock, spin lock, futex.
 *
 * User threads and kernel threads alike, in any mixture; what is needed is memory of the program,
 * initialised by its initialiser or by its _init call, never copied, and dropped when nobody uses
 * it. Nothing has to be destroyed; _destroy checks that nobody uses the object (BUSY), which cannot
 * be used any more. "Switches": a user thread may go on on another kernel thread.
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
#define STERNA_MUTEX_INIT \
  {                       \
    { 0, 0, 0, 0, 0 }     \
  }

typedef struct sterna_condition {
  uint64_t opaque[4];
} sterna_condition;
#define STERNA_CONDITION_INIT \
  {                           \
    { 0, 0, 0, 0 }            \
  }

typedef struct sterna_semaphore { /* As STERNA_SEMAPHORE_INIT it has no unit. */
  uint64_t opaque[5];
} sterna_semaphore;
#define STERNA_SEMAPHORE_INIT \
  {                           \
    { 0, 0, 0, 0, 0 }         \
  }

typedef struct sterna_barrier { /* Needs sterna_barrier_init. */
  uint64_t opaque[5];
} sterna_barrier;

typedef struct sterna_once {
  uint64_t opaque[5];
} sterna_once;
#define STERNA_ONCE_INIT \
  {                      \
    { 0, 0, 0, 0, 0 }    \
  }

/* What happens when the holder locks it again, and when another one unlocks it. */
typedef enum sterna_mutex_kind {
  STERNA_MUTEX_CHECKED = 0,   /* DEADLOCK; NOT_OWNER. STERNA_MUTEX_INIT is of this kind. */
  STERNA_MUTEX_RECURSIVE = 1, /* It holds it once more, up to 2^32 - 1 times; NOT_OWNER. */
  STERNA_MUTEX_NORMAL = 2 /* It waits (DEADLOCK would not be seen); another one may unlock it. */
} sterna_mutex_kind;
sterna_status sterna_mutex_init(sterna_mutex* mutex, sterna_mutex_kind kind) STERNA_NOEXCEPT;
sterna_status sterna_mutex_destroy(sterna_mutex* mutex) STERNA_NOEXCEPT;

/* DEADLOCK if the caller holds it. Switches. */
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
sterna_status sterna_semaphore_release(sterna_semaphore* semaphore, uint32_t count) STERNA_NOEXCEPT;

/* A semaphore by its name: one for all of this node (process) who open it, whatever the library
 * they are in; not in other processes, where the system's are. With CREATE it is made with `count`
 * units if there is none of that name, with EXCLUSIVE it must not be there (BUSY); without,
 * NOT_FOUND. Whoever opens it again gets the same object. A name has 1 to 250 bytes. OUT_OF_MEMORY.
 * Not in mobile ranks, which may leave the process (UNSUPPORTED). None of the three switches. */
#define STERNA_SEMAPHORE_CREATE 1u
#define STERNA_SEMAPHORE_EXCLUSIVE 2u /* With CREATE. */
sterna_status sterna_semaphore_open(const char* name, uint32_t flags, uint32_t count,
                                    sterna_semaphore** semaphore) STERNA_NOEXCEPT;
/* Undoes one open. The semaphore and its units stay while it has a name. NOT_FOUND: it is no named
 * one, or was closed as often as opened. */
sterna_status sterna_semaphore_close(sterna_semaphore* semaphore) STERNA_NOEXCEPT;
/* It has no name any more: who opens that makes another one. It goes with its last close. */
sterna_status sterna_semaphore_unlink(const char* name) STERNA_NOEXCEPT;

/* For `count` participants; INVALID_ARGUMENT: 0. */
sterna_status sterna_barrier_init(sterna_barrier* barrier, uint32_t count) STERNA_NOEXCEPT;
/* Participants that wait let others run and look again, instead of sleeping: less work when all of
 * them share few workers. */
sterna_status sterna_barrier_init_yielding(sterna_barrier* barrier, uint32_t count) STERNA_NOEXCEPT;
sterna_status sterna_barrier_destroy(sterna_barrier* barrier) STERNA_NOEXCEPT;
/* The halves of sterna_barrier_wait, for work in between: each participant calls both, in turn.
 * Only finish switches. INVALID_ARGUMENT: nobody has arrived in that round. */
sterna_status sterna_barrier_arrive(sterna_barrier* barrier, uint32_t* round,
                                    int* is_last) STERNA_NOEXCEPT;
sterna_status sterna_barrier_finish(sterna_barrier* barrier, uint32_t round) STERNA_NOEXCEPT;
/* Participants come or leave for good, who have not arrived in this round: those who wait go on if
 * they waited for these only. *count (may be NULL) is how many there are now. INVALID_ARGUMENT:
 * none would be left. */
sterna_status sterna_barrier_add(sterna_barrier* barrier, int32_t change,
                                 uint32_t* count) STERNA_NOEXCEPT;

/* Waits until all have come; can be used again at once. *is_last (may be NULL) is 1 for one of
 * them. Switches. */
sterna_status sterna_barrier_wait(sterna_barrier* barrier, int* is_last) STERNA_NOEXCEPT;

/* The first caller runs function(argument); all return after that has returned. Switches. */
sterna_status sterna_once_call(sterna_once* once, void (*function)(void* argument),
                               void* argument) STERNA_NOEXCEPT;

/* Many readers or one writer. FAIR: in turns. READERS, WRITERS: these pass the others, who may
 * starve. All zeroes is a fair one. Waits are cancellation points. */
typedef struct sterna_rwlock {
  uint64_t opaque[7];
} sterna_rwlock;
#define STERNA_RWLOCK_INIT  \
  {                         \
    { 0, 0, 0, 0, 0, 0, 0 } \
  }
typedef enum sterna_rwlock_preference {
  STERNA_RWLOCK_FAIR = 0,
  STERNA_RWLOCK_READERS = 1,
  STERNA_RWLOCK_WRITERS = 2
} sterna_rwlock_preference;
sterna_status sterna_rwlock_init(sterna_rwlock* lock,
                                 sterna_rwlock_preference preference) STERNA_NOEXCEPT;
sterna_status sterna_rwlock_destroy(sterna_rwlock* lock) STERNA_NOEXCEPT;
/* TIMED_OUT; BUSY with a timeout of 0; DEADLOCK: the caller writes. Switch. */
sterna_status sterna_rwlock_read(sterna_rwlock* lock, uint64_t timeout_ns) STERNA_NOEXCEPT;
sterna_status sterna_rwlock_write(sterna_rwlock* lock, uint64_t timeout_ns) STERNA_NOEXCEPT;
/* NOT_OWNER: nobody reads; the caller does not write. Do not switch. */
sterna_status sterna_rwlock_end_read(sterna_rwlock* lock) STERNA_NOEXCEPT;
sterna_status sterna_rwlock_end_write(sterna_rwlock* lock) STERNA_NOEXCEPT;

/* For sections of some instructions. Who does not get it spins a little, then lets others of its
 * worker run, so that it works even if the holder does not run. */
typedef struct sterna_spin_lock {
  uint32_t opaque;
} sterna_spin_lock;
#define STERNA_SPIN_LOCK_INIT \
  { 0 }
sterna_status sterna_spin_lock_take(sterna_spin_lock* lock) STERNA_NOEXCEPT; /* Switches. */
sterna_status sterna_spin_lock_try(sterna_spin_lock* lock) STERNA_NOEXCEPT;  /* BUSY. */
sterna_status sterna_spin_lock_give(sterna_spin_lock* lock) STERNA_NOEXCEPT; /* NOT_OWNER: free. */

/* Waiting until a word of the program changes: who changes *word and then calls wake misses nobody.
 * The waiters hang on the object, not in a table that all words share. */
typedef struct sterna_futex {
  uint64_t opaque[3];
} sterna_futex;
#define STERNA_FUTEX_INIT \
  {                       \
    { 0, 0, 0 }           \
  }
/* Waits while (*word & mask) == value. BUSY: it is different already; TIMED_OUT. A cancellation
 * point. Switches. */
sterna_status sterna_futex_wait(sterna_futex* futex, const uint64_t* word, uint64_t mask,
                                uint64_t value, uint64_t timeout_ns) STERNA_NOEXCEPT;
/* Wakes up to `count`; *woken (may be NULL): how many. Does not switch. */
sterna_status sterna_futex_wake(sterna_futex* futex, uint32_t count,
                                uint32_t* woken) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_SYNC_H */
