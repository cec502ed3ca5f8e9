/* Calling functions on other nodes, by name.
 *
 * All nodes register the same services before sterna_start. Calls come from user threads and kernel
 * threads, between sterna_start and sterna_stop (else NOT_STARTED: MPI_Init alone is not enough).
 * Not in mobile ranks, which are not tied to a node (UNSUPPORTED); completion.h is for them, too.
 * After PM2's LRPC and rawrpc (paper 000 §4.3, 002 §1.3; pm2_rpc.h). What a call fails with has a
 * text in sterna_error_detail, that of the service if it gave one. From C++: rpc.hpp.
 */
#ifndef STERNA_RPC_H
#define STERNA_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/pack.h"
#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_rpc_request sterna_rpc_request; /* Opaque; valid inside the service. */
typedef struct sterna_rpc_call sterna_rpc_call;       /* Opaque. */
typedef struct sterna_rpc_group sterna_rpc_group;     /* Opaque. */

/* What it returns other than SUCCESS is what the call returns. Of C++, it may throw: the call then
 * returns REFUSED, with the text of the exception. So it does where the service's thread ends
 * inside it (sterna_thread_exit, cancelled) and has not replied. */
typedef sterna_status (*sterna_rpc_service)(void* context, sterna_rpc_request* request);

typedef enum sterna_rpc_kind {
  /* Inside the poll that found the request, in the order of one caller's requests: must not switch
   * or wait, so what does is refused with DEADLOCK there (EDEADLK: calls of io.h that would block).
   * With long pieces (above 8 KiB), which come by themselves, it runs when they have come, whatever
   * came between: in a poll, or, where they have to be waited for, in a thread. */
  STERNA_RPC_QUICK = 0,
  STERNA_RPC_THREAD = 1 /* In a user thread of its own, of 248 KiB of stack: may do everything. */
} sterna_rpc_kind;

/* Fill it with STERNA_RPC_SERVICE_OPTIONS_DEFAULT, then set what you need. */
typedef struct sterna_rpc_service_options {
  size_t size_bytes; /* sizeof(sterna_rpc_service_options), which says the caller's version. */
  sterna_rpc_kind kind;
  uint32_t unpacks; /* 1: the service takes its arguments by sterna_rpc_unpack, in the pieces in
                     * which they were packed; sterna_rpc_arguments has the short ones only. */
  sterna_thread_options thread; /* How threads for it are made: see sterna_rpc_set_thread. */
} sterna_rpc_service_options;

#define STERNA_RPC_SERVICE_OPTIONS_DEFAULT \
  { sizeof(sterna_rpc_service_options), STERNA_RPC_QUICK, 0, STERNA_THREAD_OPTIONS_DEFAULT }

/* Before sterna_start, by the initial thread; the name is copied. Fails with BUSY (after
 * sterna_start), INVALID_ARGUMENT (NULL, a name in use), OUT_OF_MEMORY. */
sterna_status sterna_rpc_register(const char* name, sterna_rpc_kind kind,
                                  sterna_rpc_service service, void* context) STERNA_NOEXCEPT;
sterna_status sterna_rpc_register_with(const char* name, const sterna_rpc_service_options* options,
                                       sterna_rpc_service service, void* context) STERNA_NOEXCEPT;

/* From now on threads of the service on this node are made with these options (copied, names as
 * well): all but `stack`; stack_bytes 0 means 248 KiB, no name that of the service. They are
 * detached. `bubble`: they belong to it, until it is joined (or destroyed: not in a quick service);
 * sterna_bubble_add_thread says which options count then. What a thread cannot have so is an error of the call. Any thread, also before
 * sterna_start. Fails with NOT_FOUND (no such service), INVALID_ARGUMENT. */
sterna_status sterna_rpc_set_thread(const char* name,
                                    const sterna_thread_options* options) STERNA_NOEXCEPT;

/* Inside a service: who asks, with what (aligned for any type, valid until the service returns),
 * and what it gets (copied; the last one counts). */
uint32_t sterna_rpc_from(const sterna_rpc_request* request) STERNA_NOEXCEPT;
const void* sterna_rpc_arguments(const sterna_rpc_request* request, size_t* bytes) STERNA_NOEXCEPT;
sterna_status sterna_rpc_reply(sterna_rpc_request* request, const void* data,
                               size_t bytes) STERNA_NOEXCEPT;
/* The same now, without a copy: returns when the bytes may be changed. What the service returns is
 * dropped, it may go on. Switches. REFUSED: it has replied so before, or nobody waits for a reply;
 * CLOSED: the caller is gone, or all nodes are in sterna_stop and nobody is left who could take the
 * reply (who takes it later gets CLOSED too); DEADLOCK: inside the poll; OUT_OF_MEMORY: it has not
 * replied. */
sterna_status sterna_rpc_reply_now(sterna_rpc_request* request, const void* data,
                                   size_t bytes) STERNA_NOEXCEPT;
/* Returns `status`, after it has kept the text (copied, may be NULL) for the caller's
 * sterna_error_detail: `return sterna_rpc_fail(request, STERNA_REFUSED, "no such row");` */
sterna_status sterna_rpc_fail(sterna_rpc_request* request, sterna_status status,
                              const char* text) STERNA_NOEXCEPT;

/* The next piece of a service that unpacks. `bytes` and the order are those of the packing. EXPRESS
 * pieces are there when it returns, CHEAPER ones after sterna_rpc_wait_data, which also the end of
 * the service waits for. Short pieces are always there, and cost a copy; long ones (above 8 KiB)
 * go directly from where they were packed to `buffer`. Switches for those. Fails with REFUSED (no
 * such piece), CLOSED, OUT_OF_MEMORY, INVALID_ARGUMENT. */
sterna_status sterna_rpc_unpack(sterna_rpc_request* request, void* buffer, size_t bytes,
                                sterna_unpack_mode mode) STERNA_NOEXCEPT;
/* Waits for all pieces. Returns the first fault of one. Switches. */
sterna_status sterna_rpc_wait_data(sterna_rpc_request* request) STERNA_NOEXCEPT;
/* How many bytes the pieces have that were not taken yet. Does not switch. */
uint64_t sterna_rpc_bytes_left(const sterna_rpc_request* request) STERNA_NOEXCEPT;

/* Calls a service of `node` (also the own one) and waits for its reply, at most `bytes_max`
 * bytes of which are stored; *bytes (may be NULL) is the length of the whole reply. Long arguments
 * and replies go directly from where they lie to where they are wanted; arguments are copied first
 * if a timeout could end the call before that. Switches. Fails with what the service returned,
 * NOT_FOUND (no such service there), TRUNCATED, TIMED_OUT, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY
 * (here or there), NOT_STARTED, DEADLOCK (inside a quick service or a callback of a message). */
sterna_status sterna_rpc_call_for(uint32_t node, const char* name, const void* arguments,
                                  size_t argument_bytes, void* reply, size_t bytes_max,
                                  size_t* bytes, uint64_t timeout_ns) STERNA_NOEXCEPT;

/* Without a reply: what the service returns is dropped. The arguments are copied. Switches while
 * more than 1 MiB of what this node has posted to that one before has not begun there: each post
 * counts with its bytes and 512 more, above 8 KiB with two and a half times its bytes, until its
 * quick service has run or the thread of its service has begun (with its arguments, unless the
 * service unpacks them), or it was refused. A service that posts has begun, so nodes may flood
 * each other. Inside quick services, callbacks of messages and polling tasks it goes at once, and
 * counts. Fails with CLOSED (also if the node dies meanwhile), INVALID_ARGUMENT, OUT_OF_MEMORY,
 * NOT_STARTED. */
sterna_status sterna_rpc_post(uint32_t node, const char* name, const void* arguments,
                              size_t argument_bytes) STERNA_NOEXCEPT;

/* As sterna_rpc_call_for, in two parts: the arguments are copied; *call ends with
 * sterna_rpc_wait, once, by any one thread. Start does not switch, wait does. So nothing but the
 * caller bounds how many are under way, each with its arguments in memory here and its request
 * there: who starts many ends the oldest before he starts the next. */
sterna_status sterna_rpc_start(uint32_t node, const char* name, const void* arguments,
                               size_t argument_bytes, sterna_rpc_call** call) STERNA_NOEXCEPT;
/* 1: wait will not wait, unless the reply is long. */
int sterna_rpc_is_done(const sterna_rpc_call* call) STERNA_NOEXCEPT;
/* As the end of sterna_rpc_call_for. DEADLOCK (inside a quick service or a callback it would wait),
 * NOT_STARTED, INVALID_ARGUMENT (a NULL): the call goes on; else it has ended. */
sterna_status sterna_rpc_wait(sterna_rpc_call* call, void* reply, size_t bytes_max,
                              size_t* bytes) STERNA_NOEXCEPT;
/* Waits until sterna_rpc_wait, which still has to follow, knows how the call was: *bytes (may be
 * NULL) is the length of its reply. Switches. TIMED_OUT: the call goes on. Else SUCCESS. */
sterna_status sterna_rpc_await(sterna_rpc_call* call, size_t* bytes,
                               uint64_t timeout_ns) STERNA_NOEXCEPT;
/* Whether the caller may wait for calls, before it starts one: SUCCESS, DEADLOCK (inside the poll),
 * NOT_STARTED, UNSUPPORTED. Does not switch. */
sterna_status sterna_rpc_may_wait(void) STERNA_NOEXCEPT;

/* --- Calls built piece by piece -------------------------------------------------------------- */

/* Fill it with STERNA_RPC_OPTIONS_DEFAULT, then set what you need. */
typedef struct sterna_rpc_options {
  size_t size_bytes;   /* sizeof(sterna_rpc_options), which says the caller's version. */
  uint32_t priority;   /* Of the service's thread: STERNA_PRIORITY_..., */
  uint32_t reserved;   /* 0. */
  size_t stack_bytes;  /* and its stack, rounded up to KiB, at most 2 GiB; */
  uint64_t timeout_ns; /* how long sterna_rpc_call waits. */
} sterna_rpc_options;
#define STERNA_RPC_AS_REGISTERED UINT32_MAX /* The priority that the service's node says. */
#define STERNA_RPC_OPTIONS_DEFAULT \
  { sizeof(sterna_rpc_options), STERNA_RPC_AS_REGISTERED, 0, 0, STERNA_FOREVER }

typedef struct sterna_rpc_packing { /* Memory of the program, never copied, from begin to end. */
  uint64_t opaque[16];
} sterna_rpc_packing;

/* Begins the arguments of one call; whom it goes to is said at the end. `options` may be NULL. One
 * thread at a time uses a packing. Fails with NOT_STARTED, INVALID_ARGUMENT, OUT_OF_MEMORY. */
sterna_status sterna_rpc_begin(sterna_rpc_packing* packing, const char* name,
                               const sterna_rpc_options* options) STERNA_NOEXCEPT;
/* Adds a piece; the modes are those of pack.h: SAFER ones may be changed at once, LATER ones until
 * the end begins, CHEAPER ones stay until the end has come. Of one call, at most 256 are long
 * (above 8 KiB). Does not switch. Fails with OUT_OF_MEMORY, INVALID_ARGUMENT, REFUSED (no begin).
 */
sterna_status sterna_rpc_pack(sterna_rpc_packing* packing, const void* data, size_t bytes,
                              sterna_pack_mode mode) STERNA_NOEXCEPT;
/* The four ends; whatever they return, the packing has ended. As sterna_rpc_call_for, but that it
 * waits in any case until all pieces may be changed: */
sterna_status sterna_rpc_call_packed(sterna_rpc_packing* packing, uint32_t node, void* reply,
                                     size_t bytes_max, size_t* bytes) STERNA_NOEXCEPT;
/* As sterna_rpc_post; waits until all pieces may be changed, which for long ones is when the
 * service has taken them, or has been refused. Switches. */
sterna_status sterna_rpc_post_packed(sterna_rpc_packing* packing, uint32_t node) STERNA_NOEXCEPT;
/* As sterna_rpc_start; LATER and CHEAPER pieces stay until sterna_rpc_wait returns. */
sterna_status sterna_rpc_start_packed(sterna_rpc_packing* packing, uint32_t node,
                                      sterna_rpc_call** call) STERNA_NOEXCEPT;
/* No call. */
sterna_status sterna_rpc_cancel(sterna_rpc_packing* packing) STERNA_NOEXCEPT;

/* --- Several nodes at once -------------------------------------------------------------------- */

typedef struct sterna_rpc_result {
  sterna_status status; /* As sterna_rpc_call_for. */
  uint32_t node;
  size_t bytes; /* Of the whole reply. */
} sterna_rpc_result;

/* The same call of `count` nodes (nodes[i]; NULL: 0 to count - 1), at the same time. The reply of
 * the i-th goes to `replies` + i * bytes_each, at most bytes_each of it; results[i] (may be NULL)
 * is how it was. Returns SUCCESS, or the first failure in the order of the nodes, of which the text
 * tells; the others have ended as well. Switches. */
sterna_status sterna_rpc_multicast(const uint32_t* nodes, uint32_t count, const char* name,
                                   const void* arguments, size_t argument_bytes, void* replies,
                                   size_t bytes_each, sterna_rpc_result* results,
                                   uint64_t timeout_ns) STERNA_NOEXCEPT;
/* In two parts, as sterna_rpc_start: */
sterna_status sterna_rpc_multicast_start(const uint32_t* nodes, uint32_t count, const char* name,
                                         const void* arguments, size_t argument_bytes,
                                         sterna_rpc_group** group) STERNA_NOEXCEPT;
sterna_status sterna_rpc_multicast_wait(sterna_rpc_group* group, void* replies, size_t bytes_each,
                                        sterna_rpc_result* results,
                                        uint64_t timeout_ns) STERNA_NOEXCEPT;
/* Without replies, as sterna_rpc_post, which is when it switches, one node after the other: to all
 * that are there; CLOSED: some are not. */
sterna_status sterna_rpc_multicast_post(const uint32_t* nodes, uint32_t count, const char* name,
                                        const void* arguments,
                                        size_t argument_bytes) STERNA_NOEXCEPT;

/* `count` values of a type: sterna_rpc_pack_int(&packing, &n, 1, mode)... Both sides have the same
 * types, as they run the same program. */
#define STERNA_RPC_PACK_OF_TYPE(name, type)                                                       \
  static inline sterna_status sterna_rpc_pack_##name(                                             \
      sterna_rpc_packing* packing, const type* values, size_t count, sterna_pack_mode mode)       \
      STERNA_NOEXCEPT {                                                                           \
    return sterna_rpc_pack(packing, values, count * sizeof(type), mode);                          \
  }                                                                                               \
  static inline sterna_status sterna_rpc_unpack_##name(sterna_rpc_request* request, type* values, \
                                                       size_t count, sterna_unpack_mode mode)     \
      STERNA_NOEXCEPT {                                                                           \
    return sterna_rpc_unpack(request, values, count * sizeof(type), mode);                        \
  }
STERNA_RPC_PACK_OF_TYPE(byte, unsigned char)
STERNA_RPC_PACK_OF_TYPE(short, short)
STERNA_RPC_PACK_OF_TYPE(int, int)
STERNA_RPC_PACK_OF_TYPE(long, long)
STERNA_RPC_PACK_OF_TYPE(float, float)
STERNA_RPC_PACK_OF_TYPE(double, double)
STERNA_RPC_PACK_OF_TYPE(pointer, void*)
#undef STERNA_RPC_PACK_OF_TYPE

#ifdef __cplusplus
}
#endif

#endif /* STERNA_RPC_H */
