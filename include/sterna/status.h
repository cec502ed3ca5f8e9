/* What the calls of Sterna return, and how a declaration is marked.
 *
 * Numbers never change their meaning; new ones are added at the end.
 */
#ifndef STERNA_STATUS_H
#define STERNA_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of Sterna throw nothing. */
#ifdef __cplusplus
#define STERNA_NOEXCEPT noexcept
#else
#define STERNA_NOEXCEPT
#endif

typedef enum sterna_status {
  STERNA_SUCCESS = 0,
  STERNA_OUT_OF_MEMORY = 1,
  STERNA_INVALID_ARGUMENT = 2,
  STERNA_BUSY = 3, /* Somebody uses or holds it now. */
  STERNA_TIMED_OUT = 4,
  STERNA_NOT_OWNER = 5,   /* The caller does not hold what it gives back. */
  STERNA_DEADLOCK = 6,    /* The caller would wait for itself. */
  STERNA_NOT_STARTED = 7, /* Before sterna_start or after sterna_stop. */
  STERNA_UNSUPPORTED = 8, /* Not from this thread, or not in this kind of job. */
  STERNA_CLOSED = 9,      /* The node on the other side is gone. */
  STERNA_TRUNCATED = 10,  /* What came is longer than the buffer; the beginning was stored. */
  STERNA_REFUSED = 11,    /* The other side, or the state of the caller, said no. */
  STERNA_NOT_FOUND = 12,
  STERNA_SYSTEM = 13,   /* The operating system said no; standard error has its words. */
  STERNA_CANCELLED = 14 /* What was waited for was taken back: a thread, a receive. */
} sterna_status;

/* A timeout that never comes. Timeouts are nanoseconds from now. */
#define STERNA_FOREVER UINT64_MAX

/* One sentence part, for messages; never NULL, valid for ever. Any thread, at any time. */
const char* sterna_status_text(sterna_status status) STERNA_NOEXCEPT;

/* Which object the last refused call of the calling thread was about, which rule it broke and what
 * to do, e.g. "mutex 0x7f..: thread 'b' gives it back, but 'a' holds it". Empty if no call was
 * refused with such a text. Writes as much as fits and a 0 byte. Any thread. Fails with
 * INVALID_ARGUMENT, TRUNCATED. */
sterna_status sterna_error_detail(char* buffer, uint64_t bytes) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_STATUS_H */
