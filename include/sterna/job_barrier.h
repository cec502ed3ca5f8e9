/* A barrier of all ranks of the job, or of threads of all of them.
 *
 * Each rank has an object of its own with the same number; those with different numbers, or of
 * different sessions, do not see each other, and may be waited at side by side. A library's are of
 * a session of the library, or their numbers may be those of somebody else. With several threads a rank these meet first, then
 * one of them meets the other ranks, then all go on. After pm2_barrier and pm2_thread_barrier of
 * PM2 (pm2_sync.h; "A multithreaded runtime environment...", 1998, 1.4). MPI programs have
 * MPI_Barrier; both may be used in one program.
 *
 * In log2(ranks) rounds of messages, from the threads that may call message.h. Not inside callbacks of messages and quick services.
 */
#ifndef STERNA_JOB_BARRIER_H
#define STERNA_JOB_BARRIER_H

#include <stdint.h>

#include "sterna/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_job_barrier { /* Needs sterna_job_barrier_init. Stays where it is. */
  uint64_t opaque[8];
} sterna_job_barrier;

/* For `threads` threads of this rank (each rank may have another number of them), which take part
 * in each round. `number`: the same on all ranks, and used by one barrier at a time. Any thread,
 * after sterna_start (or MPI_Init). INVALID_ARGUMENT: NULL, no threads, a number below 0.
 * NOT_STARTED. */
sterna_status sterna_job_barrier_init(sterna_job_barrier* barrier, uint32_t threads,
                                      int32_t number) STERNA_NOEXCEPT;
/* The barrier is one of this session, where numbers are the session's own; NULL: of that without a
 * name, as at first. The same on all ranks, before anybody waits at it. The session may be closed
 * afterwards. Any thread; does not switch. INVALID_ARGUMENT: no barrier, or the session is not open. */
sterna_status sterna_job_barrier_set_session(sterna_job_barrier* barrier,
                                             sterna_session* session) STERNA_NOEXCEPT;
/* BUSY: threads wait at it. */
sterna_status sterna_job_barrier_destroy(sterna_job_barrier* barrier) STERNA_NOEXCEPT;

/* Returns when all threads of all ranks have come; can be used again at once. *is_last (may be
 * NULL) is 1 for one thread of each rank. Switches. CLOSED, for all threads of all ranks that live:
 * a rank is gone; nobody can meet at this barrier any more. It ends at the loss, whoever of the
 * other ranks has not come; but not before all threads of this rank have, which meet first. Of a
 * loss just while a round ends some may hear only in the next one. DEADLOCK: in a callback. */
sterna_status sterna_job_barrier_wait(sterna_job_barrier* barrier, int* is_last) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_JOB_BARRIER_H */
