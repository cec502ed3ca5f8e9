/* Start and end of Sterna in a program, and the place of the program in its job.
 *
 * A program started by `sterna run -n N ./prog` is N processes, each a node with one rank; started
 * alone it is one. sterna_start and MPI_Init, in any order, open one job, which ends with the last
 * of sterna_stop and MPI_Finalize. Inside a mobile rank (`sterna run --nodes`) both are already
 * done. sterna_start and sterna_stop are called by the initial kernel thread, once each; everything
 * else says for itself who may call it.
 *
 *     sterna_start(NULL); ... threads, calls, messages ... sterna_stop();
 */
#ifndef STERNA_STERNA_H
#define STERNA_STERNA_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STERNA_VERSION_MAJOR 0
#define STERNA_VERSION_MINOR 1

/* Version of the library that runs: major * 1000 + minor. Any thread, at any time. */
uint32_t sterna_version(void) STERNA_NOEXCEPT;

/* Fill it with STERNA_OPTIONS_DEFAULT, then set what you need. */
typedef struct sterna_options {
  size_t size_bytes;  /* sizeof(sterna_options), which says the caller's version. */
  uint32_t workers;   /* Kernel threads that run user threads; 0: one per processor of the node. */
  uint32_t reserved;  /* 0. */
  const char* policy; /* Who places the threads of bubbles: "flat", "gang(numa)"...; NULL: that of
                       * sterna_policy_set, else flat. The setting `policy` wins over it. */
} sterna_options;

/* For an initialiser: sterna_options options = STERNA_OPTIONS_DEFAULT; */
#define STERNA_OPTIONS_DEFAULT \
  { sizeof(sterna_options), 0, 0, NULL }

/* Starts Sterna, together with all other nodes of the job: returns when all have called it.
 * Services (rpc.h) are registered before. `options` may be NULL. In a mobile rank options mean
 * nothing. Fails with INVALID_ARGUMENT (size_bytes, policy); BUSY (started); UNSUPPORTED
 * (stopped, or failed with what follows: a process starts once); SYSTEM, CLOSED (a node has
 * ended before its start), OUT_OF_MEMORY: why is on standard error, and nothing is open. */
sterna_status sterna_start(const sterna_options* options) STERNA_NOEXCEPT;

/* Waits until all nodes have called it, all threads have ended and all requests (rpc.h) have been
 * served, everywhere, those that services make meanwhile as well; then ends what sterna_start began; a bubble that was submitted and not joined is joined, and kernel threads that
 * are joining one, or a thread, are waited for. MPI, if it is open, goes on. Fails with NOT_STARTED,
 * or UNSUPPORTED on a user thread. */
sterna_status sterna_stop(void) STERNA_NOEXCEPT;

/* Where the caller is. A node is one process of the job; a rank is one program of it, on the
 * node of the same number, but for mobile ranks, which share nodes and change them. Before
 * sterna_start: 0 of 1. Any thread. */
uint32_t sterna_node_index(void) STERNA_NOEXCEPT;
uint32_t sterna_node_count(void) STERNA_NOEXCEPT;
uint32_t sterna_rank(void) STERNA_NOEXCEPT;
uint32_t sterna_rank_count(void) STERNA_NOEXCEPT;

/* Workers of this node; 0 before sterna_start. Any thread. */
uint32_t sterna_worker_count(void) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_STERNA_H */
