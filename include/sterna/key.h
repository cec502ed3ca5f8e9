/* Thread-specific data of user threads: a value per thread and key.
 *
 * Between sterna_start and sterna_stop; not in mobile ranks, whose globals are their own anyway
 * (UNSUPPORTED). No call switches.
 */
#ifndef STERNA_KEY_H
#define STERNA_KEY_H

#include <stdint.h>

#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t sterna_key;

#define STERNA_KEYS_MAX 1024u /* At a time. */

/* `destructor` (may be NULL) runs on a thread at its end for a value that is not NULL, in up to
 * four rounds. Any thread. Fails with OUT_OF_MEMORY: all STERNA_KEYS_MAX keys are in use. */
sterna_status sterna_key_create(sterna_key* key, void (*destructor)(void* value)) STERNA_NOEXCEPT;

/* Nobody uses the key any more: the values are dropped, no destructor is called. Any thread. Fails
 * with INVALID_ARGUMENT (no such key). */
sterna_status sterna_key_delete(sterna_key key) STERNA_NOEXCEPT;

/* Of the calling user thread; NULL where it was never set, and on kernel threads. */
void* sterna_key_get(sterna_key key) STERNA_NOEXCEPT;

/* *value is that of another thread, which has not ended, at this moment: NULL where it has set
 * none. Any thread, kernel threads too. What the value points to may go when that thread ends.
 * Fails with INVALID_ARGUMENT (a thread that is gone, no such key). (PM2's
 * marcel_specificdatalocation.) */
sterna_status sterna_key_get_of(sterna_key key, const sterna_thread* thread,
                                void** value) STERNA_NOEXCEPT;

/* Fails with UNSUPPORTED on a kernel thread, OUT_OF_MEMORY, INVALID_ARGUMENT (no such key). */
sterna_status sterna_key_set(sterna_key key, void* value) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_KEY_H */
