/* Messages with tags between ranks: at once, or by requests.
 *
 * Messages of one sender to one receiver within one session are received in the order in which they
 * were sent, where tags leave a choice. They never mix with those of MPI. From any thread of a
 * rank, kernel threads too (in a process with MPI below MPI_THREAD_MULTIPLE and without sterna_start
 * one at a time, as MPI says: else it ends with a broken rule). A mobile rank may be moved inside calls that switch; requests under way
 * go on, their memory moves with it. After the interface sendrecv of NewMadeleine
 * (nm_sendrecv_interface.h). NULL where it is not allowed, and numbers out of range:
 * INVALID_ARGUMENT, with a text in sterna_error_detail.
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
#define STERNA_WHOLE_TAG UINT32_MAX /* For a mask: all bits of the tag are compared. */

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
 * INVALID_ARGUMENT, NOT_STARTED, CLOSED (the rank that was named is gone, or, of STERNA_ANY_RANK,
 * a rank has gone since the call began, which may have been the sender; a request: since it was
 * started). */
sterna_status sterna_message_receive(uint32_t rank, int32_t tag, void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) STERNA_NOEXCEPT;

/* *found is 1 if a message that fits has come, which stays; then `envelope` (may be NULL) says
 * which. In vain it lets others run: switches. CLOSED: none has come, and the rank that was named is
 * gone. */
sterna_status sterna_message_probe(uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) STERNA_NOEXCEPT;

/* Waits until a message that fits has come, which stays. Of the tag only the bits of `mask` are
 * compared; of several that fit, from one rank or others, it is the one that came first.
 * `timeout_ns` of 0: looks only, and in vain lets others run; STERNA_FOREVER. The message that comes
 * wakes who waits so, as it does a receive. Only while senders keep messages for this rank, for
 * which it had no room, it looks again, first at once, then after sleeps that become longer, to
 * 1.6 ms; meanwhile its processor is for others and the network goes on. Switches.
 * Fails with TIMED_OUT: none has come; CLOSED: none has come, and the rank that was named is gone,
 * or, of STERNA_ANY_RANK, a rank has gone since the call began; INVALID_ARGUMENT: also
 * STERNA_ANY_TAG with a mask other than STERNA_WHOLE_TAG; NOT_STARTED; DEADLOCK: in a callback, but
 * to look only. */
sterna_status sterna_message_probe_for(uint32_t rank, int32_t tag, uint32_t mask,
                                       uint64_t timeout_ns,
                                       sterna_envelope* envelope) STERNA_NOEXCEPT;

/* A request: one message out or in, described, then started, as often as wanted, each time after
 * the last one has ended. Memory of the program, never copied, that stays where it is while it is
 * started, as do the data. One thread at a time uses it; another one may wait for it than the one
 * that has started it. Nothing has to be destroyed. */
typedef struct sterna_message_request { /* Needs sterna_message_send_init or _receive_init. */
  uint64_t opaque[54];
} sterna_message_request;

/* Describes a message; what was in the memory before is forgotten, but for a request that is
 * started: BUSY, and it goes on. Does not switch. */
sterna_status sterna_message_send_init(sterna_message_request* request, uint32_t rank, int32_t tag,
                                       const void* data, size_t bytes) STERNA_NOEXCEPT;
sterna_status sterna_message_receive_init(sterna_message_request* request, uint32_t rank,
                                          int32_t tag, void* buffer,
                                          size_t bytes_max) STERNA_NOEXCEPT;

/* What follows changes the description of a request that is not started (BUSY: it is). */

typedef enum sterna_send_mode {
  STERNA_SEND_STANDARD = 0,
  STERNA_SEND_SYNCHRONOUS = 1, /* It ends when its receive has begun, not before. */
  STERNA_SEND_READY = 2        /* The program knows that the receive is started already. */
} sterna_send_mode;
sterna_status sterna_message_set_mode(sterna_message_request* request,
                                      sterna_send_mode mode) STERNA_NOEXCEPT;

/* Among messages that wait in this node until the way to another node is free, those of higher
 * priority go first, at first 0: short ones, and the data of long ones. Those for which the
 * receiver has no room (net_eager_window) wait in their order. A message never overtakes
 * one of the same rank to the same rank, in the same session with the same tag; a receive with
 * STERNA_ANY_TAG or a mask sees the others in the order in which they went. After the strategy
 * `prio` and nm_sr_send_set_priority of NewMadeleine. INVALID_ARGUMENT: more than the maximum, or
 * it is a receive. */
#define STERNA_MESSAGE_PRIORITY_MAX 7
sterna_status sterna_message_set_priority(sterna_message_request* request,
                                          uint32_t priority) STERNA_NOEXCEPT;

/* Of the tag only these bits are compared. A receive with a mask looks at the messages that wait
 * one by one, and each message at the receives with masks. Not with STERNA_ANY_TAG. */
sterna_status sterna_message_set_mask(sterna_message_request* request,
                                      uint32_t mask) STERNA_NOEXCEPT;

/* The data are these, one after the other, instead of one range. The array stays until the end. */
typedef struct sterna_piece {
  void* address;
  size_t bytes;
} sterna_piece;
sterna_status sterna_message_set_pieces(sterna_message_request* request, const sterna_piece* pieces,
                                        size_t count) STERNA_NOEXCEPT;

/* Or `count` blocks, the first at the address that was given to _init, each `stride` bytes (may be
 * negative) behind the one before. INVALID_ARGUMENT: together more than 2^47 bytes. */
sterna_status sterna_message_set_strided(sterna_message_request* request, size_t block_bytes,
                                         size_t count, ptrdiff_t stride) STERNA_NOEXCEPT;

/* Or what this function says: stores piece number `index`, or returns 0 if there is none (and none
 * behind it). It is called for 0, 1, 2... some times over, when the request starts and when it
 * ends, on the thread that sees the end; the same question has the same answer. It must be quick
 * and call nothing of Sterna. (REFUSED, at the start: it answers otherwise the second time.) */
typedef int (*sterna_next_piece)(const void* layout, size_t index, sterna_piece* piece);
sterna_status sterna_message_set_layout(sterna_message_request* request, sterna_next_piece next,
                                        const void* layout) STERNA_NOEXCEPT;

/* Instead of being waited for a request may end with a call of this function, or in a queue
 * (below); waiting for it and testing it are refused then. In a program with workers the call comes
 * from the poll of the network: on any kernel thread, on any stack, one at a time, never from
 * inside sterna_message_start. In a mobile rank its own thread makes it, inside a call of this
 * header or of session.h that waits or tests; sterna_message_call_back is one that does nothing
 * else. The function must be short and must not wait nor switch (what does ends with DEADLOCK,
 * in a mobile rank what waits for messages); it may start requests, also this one, and wake
 * threads. `envelope` is that of a receive. NULL: to be waited for, as at first. NOT_STARTED, at
 * the start of the request, not here: before sterna_start (MPI_Init alone has no workers), or after
 * sterna_stop. */
typedef void (*sterna_message_callback)(void* argument, sterna_message_request* request,
                                        sterna_status status, const sterna_envelope* envelope);
sterna_status sterna_message_set_callback(sterna_message_request* request,
                                          sterna_message_callback callback,
                                          void* argument) STERNA_NOEXCEPT;
/* Makes the calls that are due, in the order in which the requests have ended: in a mobile rank; in
 * a program with workers it polls once. May move a mobile rank. Switches. NOT_STARTED. */
sterna_status sterna_message_call_back(void) STERNA_NOEXCEPT;

/* Requests that have ended, in that order, until somebody takes them. Memory of the program, never
 * copied, that stays where it is while requests of it are started. Any number of threads. */
typedef struct sterna_message_queue {
  uint64_t opaque[6];
} sterna_message_queue;
#define STERNA_MESSAGE_QUEUE_INIT \
  {                               \
    { 0, 0, 0, 0, 0, 0 }          \
  }
/* The request ends in the queue; NULL: to be waited for, as at first. */
sterna_status sterna_message_set_queue(sterna_message_request* request,
                                       sterna_message_queue* queue) STERNA_NOEXCEPT;
/* Takes the next one: *request, how it has ended, and its envelope (both may be NULL); it can be
 * started again. Waits for so long; 0: looks only. Switches. TIMED_OUT: there is none. */
sterna_status sterna_message_queue_take(sterna_message_queue* queue, uint64_t timeout_ns,
                                        sterna_message_request** request, sterna_status* ended,
                                        sterna_envelope* envelope) STERNA_NOEXCEPT;

/* Starts it. Does not wait nor switch. BUSY: it is started; NOT_STARTED; OUT_OF_MEMORY: for data of
 * many pieces, a copy. */
sterna_status sterna_message_start(sterna_message_request* request) STERNA_NOEXCEPT;

/* The two of them: _init and start. */
sterna_status sterna_message_send_start(sterna_message_request* request, uint32_t rank, int32_t tag,
                                        const void* data, size_t bytes) STERNA_NOEXCEPT;
sterna_status sterna_message_receive_start(sterna_message_request* request, uint32_t rank,
                                           int32_t tag, void* buffer,
                                           size_t bytes_max) STERNA_NOEXCEPT;

/* Waits for the end and says how it was; then the request can be started again. `envelope` (may be
 * NULL) is stored for receives. Switches. Fails as sterna_message_receive does, with CANCELLED,
 * OUT_OF_MEMORY (the message is lost: no memory for it where it came), REFUSED (it is not started),
 * TIMED_OUT: it goes on, nothing has changed. */
sterna_status sterna_message_wait(sterna_message_request* request,
                                  sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_message_wait_for(sterna_message_request* request, uint64_t timeout_ns,
                                      sterna_envelope* envelope) STERNA_NOEXCEPT;

/* *done is 1 if it has ended: then as sterna_message_wait. In vain it lets others run: switches. */
sterna_status sterna_message_test(sterna_message_request* request, int* done,
                                  sterna_envelope* envelope) STERNA_NOEXCEPT;

/* Waits until one of the started requests among these (NULL and others are passed over, and one
 * that stands there twice counts once) has ended: *index says which, and it is as if
 * sterna_message_wait had been called with it. Switches. Also fails with NOT_FOUND: none is
 * started; TIMED_OUT. */
sterna_status sterna_message_wait_any(sterna_message_request* const* requests, size_t count,
                                      uint64_t timeout_ns, size_t* index,
                                      sterna_envelope* envelope) STERNA_NOEXCEPT;
/* Waits until all of the started ones have ended. The status is the first that is not SUCCESS, in
 * their order; TIMED_OUT: some still go on, those that have ended are done with. Switches. */
sterna_status sterna_message_wait_all(sterna_message_request* const* requests, size_t count,
                                      uint64_t timeout_ns) STERNA_NOEXCEPT;

/* A receive that has no message yet ends, with CANCELLED, which is to be waited for as any end. A
 * send whose message waits for its receive (because it is long, or synchronous) is asked back: its
 * end says CANCELLED, or how it ended if a receive was there first. REFUSED: it is too late (short
 * messages have gone when they are started), or it is not started: nothing has changed. Does not
 * switch. */
sterna_status sterna_message_cancel(sterna_message_request* request) STERNA_NOEXCEPT;

/* As sterna_message_probe, and takes the message out: only who has *message receives it. Not found:
 * *message is NULL. */
typedef struct sterna_matched_message sterna_matched_message;
sterna_status sterna_message_matched_probe(uint32_t rank, int32_t tag,
                                           sterna_matched_message** message,
                                           sterna_envelope* envelope) STERNA_NOEXCEPT;
/* As sterna_message_probe_for, and takes it out. */
sterna_status sterna_message_matched_probe_for(uint32_t rank, int32_t tag, uint32_t mask,
                                               uint64_t timeout_ns,
                                               sterna_matched_message** message,
                                               sterna_envelope* envelope) STERNA_NOEXCEPT;
/* Receives it; each is received once, also one that nobody wants: into 0 bytes. The request form
 * is a receive as described by sterna_message_receive_init, whose rank and tag do not count. */
sterna_status sterna_message_receive_matched(sterna_matched_message* message, void* buffer,
                                             size_t bytes_max,
                                             sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_message_start_matched(sterna_message_request* request,
                                           sterna_matched_message* message) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_MESSAGE_H */
