/* Completions: something that is waited for here and signalled from anywhere.
 *
 * A completion is waited for by who has made it; its token is plain bytes that may be copied, sent
 * in a call or a message and kept, and whoever has it signals the completion once, on any node. It
 * finds the waiter wherever that is: a mobile rank may have moved meanwhile, any number of times.
 * After pm2_completion of PM2 (pm2.h). From any thread, kernel threads too; in mobile ranks and,
 * between sterna_start and sterna_stop, in processes (else NOT_STARTED).
 */
#ifndef STERNA_COMPLETION_H
#define STERNA_COMPLETION_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STERNA_ANY_NODE UINT32_MAX

typedef struct sterna_completion { /* Memory of the program, never copied, from init to its end. */
  uint64_t opaque[4];
} sterna_completion;

typedef struct sterna_completion_token { /* Plain bytes. */
  uint64_t opaque[4];
} sterna_completion_token;

/* Begins to wait for a signal, and says by which token it comes. `node`: the one that will signal,
 * whose loss ends the wait with CLOSED; STERNA_ANY_NODE: whoever, and no loss ends it. Does not
 * switch. Fails with INVALID_ARGUMENT, OUT_OF_MEMORY, CLOSED (that node is lost already). */
sterna_status sterna_completion_init(sterna_completion* completion, uint32_t node,
                                     sterna_completion_token* token) STERNA_NOEXCEPT;

/* Ends the wait of `token` with a payload (copied; at most 15 MiB), or with REFUSED and a text (may
 * be NULL) for sterna_error_detail. The second signal of a token is dropped, as one after its end.
 * Does not switch; quick services and callbacks may do it. Fails with INVALID_ARGUMENT (no token of
 * this job), CLOSED (the process that waits is gone), OUT_OF_MEMORY. */
sterna_status sterna_completion_signal(const sterna_completion_token* token, const void* data,
                                       size_t bytes) STERNA_NOEXCEPT;
sterna_status sterna_completion_fail(const sterna_completion_token* token,
                                     const char* text) STERNA_NOEXCEPT;

/* 1: waiting will not wait, unless the payload is long (above 8 KiB). */
int sterna_completion_is_done(const sterna_completion* completion) STERNA_NOEXCEPT;

/* Waits for the signal; stores at most bytes_max bytes of its payload, *bytes (may be NULL) is the
 * length of all. Then the completion has ended, whatever is returned but TIMED_OUT: it goes on. By
 * one thread. May move a mobile rank. Switches. Fails with TRUNCATED, REFUSED (signalled so),
 * CLOSED, OUT_OF_MEMORY, INVALID_ARGUMENT, DEADLOCK (inside a quick service or a callback). */
sterna_status sterna_completion_wait(sterna_completion* completion, void* data, size_t bytes_max,
                                     size_t* bytes, uint64_t timeout_ns) STERNA_NOEXCEPT;

/* Ends it without a signal; one that comes later is dropped. Does not wait. */
sterna_status sterna_completion_destroy(sterna_completion* completion) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_COMPLETION_H */
