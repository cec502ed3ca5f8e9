/* Messages with tags between ranks.
 *
 * Messages of one sender to one receiver are received in order. They never mix with those of MPI.
 * From any thread of a rank, kernel threads too. A mobile rank may be moved inside these calls.
 */
#ifndef STERNA_MESSAGE_H
#define STERNA_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STERNA_ANY_RANK UINT32_MAX
#define STERNA_ANY_TAG (-1) /* Tags are not negative. */

typedef struct sterna_envelope {
  uint32_t source;
  int32_t tag;
  uint64_t bytes; /* Of the message; of a receive: those stored. */
} sterna_envelope;

/* Sends to `rank` (also the own one); returns when the bytes may be reused, which for a large
 * message is when it is received. Switches. Fails with INVALID_ARGUMENT, NOT_STARTED, CLOSED. */
sterna_status sterna_message_send(uint32_t rank, int32_t tag, const void* data,
                                  size_t bytes) STERNA_NOEXCEPT;

/* Waits for a message that fits. `envelope` may be NULL. Switches. Fails with TRUNCATED,
 * INVALID_ARGUMENT, NOT_STARTED, CLOSED (the rank that was named is gone). */
sterna_status sterna_message_receive(uint32_t rank, int32_t tag, void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) STERNA_NOEXCEPT;

/* *found is 1 if a message that fits has come, which stays; then `envelope` (may be NULL) says
 * which. In vain it lets others run: switches. */
sterna_status sterna_message_probe(uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_MESSAGE_H */
