/* Balancing mobile ranks over nodes by their load.
 */
#ifndef STERNA_BALANCE_H
#define STERNA_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Now is a good moment: waits until all ranks of the job that still run have called it, and
 * moves the caller if the policy (--balance) says so. Once per step of an iterative program. A
 * no-op where ranks are not mobile. Switches. */
sterna_status sterna_balance_point(void) STERNA_NOEXCEPT;

/* Set size_bytes before the call. */
typedef struct sterna_load {
  size_t size_bytes;     /* sizeof(sterna_load), which says the caller's version. */
  uint64_t processor_ns; /* Processor time of the calling rank since its start. */
  uint64_t moves;        /* To other nodes. */
} sterna_load;

/* Of the calling mobile rank. Does not switch. Fails with UNSUPPORTED elsewhere,
 * INVALID_ARGUMENT. */
sterna_status sterna_load_query(sterna_load* load) STERNA_NOEXCEPT;

/* What a node holds now, for programs that decide themselves where their ranks go
 * (sterna_migrate_to). Set size_bytes before the call. */
typedef struct sterna_node_load {
  size_t size_bytes;     /* sizeof(sterna_node_load), which says the caller's version. */
  uint32_t ranks;        /* Ranks that are there and not about to leave. */
  uint32_t workers;      /* Kernel threads that run them. */
  uint64_t processor_ns; /* Processor time of the node's process since its start. */
} sterna_node_load;

typedef struct sterna_load_call sterna_load_call; /* Opaque. */

/* Asks `node` (also the own one) and waits for the answer. In mobile ranks, and between
 * sterna_start and sterna_stop on any thread. Switches; a mobile rank may be moved meanwhile. Fails
 * with INVALID_ARGUMENT, NOT_STARTED, OUT_OF_MEMORY, CLOSED (the node is lost). */
sterna_status sterna_node_load_query(uint32_t node, sterna_node_load* load) STERNA_NOEXCEPT;

/* The same in two parts: *call ends with sterna_node_load_wait, once, by the rank that started
 * it, by any thread of its process where ranks are not mobile. A mobile rank may move between the
 * two, the answer follows it (a call that finds the thread that made it: paper 000 section 4.3).
 * Start does not switch. Fails as sterna_node_load_query. */
sterna_status sterna_node_load_start(uint32_t node, sterna_load_call** call) STERNA_NOEXCEPT;
/* 1: the answer is here. */
int sterna_node_load_is_done(const sterna_load_call* call) STERNA_NOEXCEPT;
sterna_status sterna_node_load_wait(sterna_load_call* call, sterna_node_load* load) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_BALANCE_H */
