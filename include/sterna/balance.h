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
  size_t size_bytes;      /* sizeof(sterna_load), which says the caller's version. */
  uint64_t processor_ns;  /* Processor time of the calling rank since its start. */
  uint64_t moves;         /* To other nodes. */
} sterna_load;

/* Of the calling mobile rank. Does not switch. Fails with UNSUPPORTED elsewhere,
 * INVALID_ARGUMENT. */
sterna_status sterna_load_query(sterna_load* load) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_BALANCE_H */
