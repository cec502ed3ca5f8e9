/* Calling functions on other nodes, by name.
 *
 * All nodes register the same services before sterna_start. Calls come from user threads and kernel
 * threads, between sterna_start and sterna_stop (else NOT_STARTED: MPI_Init alone is not enough).
 * Not in mobile ranks, which are not tied to a node (UNSUPPORTED).
 */
#ifndef STERNA_RPC_H
#define STERNA_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_rpc_request sterna_rpc_request; /* Opaque; valid inside the service. */
typedef struct sterna_rpc_call sterna_rpc_call;       /* Opaque. */

/* What it returns other than SUCCESS is what the call returns. */
typedef sterna_status (*sterna_rpc_service)(void* context, sterna_rpc_request* request);

typedef enum sterna_rpc_kind {
  STERNA_RPC_QUICK = 0, /* Inside the poll that found the request: must not switch or wait. */
  STERNA_RPC_THREAD = 1 /* In a user thread of its own with 248 KiB of stack: may do everything. */
} sterna_rpc_kind;

/* Before sterna_start, by the initial thread; the name is copied. Fails with BUSY (after
 * sterna_start), INVALID_ARGUMENT (NULL, a name in use), OUT_OF_MEMORY. */
sterna_status sterna_rpc_register(const char* name, sterna_rpc_kind kind,
                                  sterna_rpc_service service, void* context) STERNA_NOEXCEPT;

/* Inside a service: who asks, with what (aligned for any type, valid until the service returns),
 * and what it gets (copied; the last one counts). */
uint32_t sterna_rpc_from(const sterna_rpc_request* request) STERNA_NOEXCEPT;
const void* sterna_rpc_arguments(const sterna_rpc_request* request, size_t* bytes) STERNA_NOEXCEPT;
sterna_status sterna_rpc_reply(sterna_rpc_request* request, const void* data,
                               size_t bytes) STERNA_NOEXCEPT;

/* Calls a service of `node` (also the own one) and waits for its reply, at most `bytes_max`
 * bytes of which are stored; *bytes (may be NULL) is the length of the whole reply. Arguments
 * and replies are of at most 15 MiB. Switches. Fails with what the service returned, NOT_FOUND
 * (no such service there), TRUNCATED, TIMED_OUT, CLOSED, INVALID_ARGUMENT, NOT_STARTED. */
sterna_status sterna_rpc_call_for(uint32_t node, const char* name, const void* arguments,
                                  size_t argument_bytes, void* reply, size_t bytes_max,
                                  size_t* bytes, uint64_t timeout_ns) STERNA_NOEXCEPT;

/* Without a reply: what the service returns is dropped. Does not switch. Fails with CLOSED,
 * INVALID_ARGUMENT, NOT_STARTED. */
sterna_status sterna_rpc_post(uint32_t node, const char* name, const void* arguments,
                              size_t argument_bytes) STERNA_NOEXCEPT;

/* As sterna_rpc_call_for, in two parts: the arguments are copied; *call ends with
 * sterna_rpc_wait, once, by any one thread. Start does not switch, wait does. */
sterna_status sterna_rpc_start(uint32_t node, const char* name, const void* arguments,
                               size_t argument_bytes, sterna_rpc_call** call) STERNA_NOEXCEPT;
/* 1: wait will not wait. */
int sterna_rpc_is_done(const sterna_rpc_call* call) STERNA_NOEXCEPT;
sterna_status sterna_rpc_wait(sterna_rpc_call* call, void* reply, size_t bytes_max,
                              size_t* bytes) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_RPC_H */
