/* Sessions: several libraries exchange messages in one job without seeing each other's.
 *
 * A session has a name and, by it, tags and orders of its own: a message is received in the session
 * in which it was sent, and nowhere else. All calls of message.h belong to a session without a
 * name.
 *
 * Sessions separate messages (this header, sterna_message_set_session), messages in pieces (pack.h)
 * and the numbers of barriers (sterna_job_barrier_set_session). One for the whole job are the names
 * of services (rpc.h) and of sessions themselves, the network with its priorities, and the settings;
 * one for a process those of semaphores (sterna_semaphore_open). sterna_message_call_back makes the
 * calls of all sessions. Completions have no names: who has the token of one has it. So a library
 * puts its own name and a dot before every name that it gives, "solver.residual", and sends nothing
 * outside of its sessions; the program has names without a dot, the session without a name, and the
 * barriers without a session.
 *
 * After the sessions of NewMadeleine (nm_session_interface.h), where they are named, too.
 */
#ifndef STERNA_SESSION_H
#define STERNA_SESSION_H

#include "sterna/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of the program, never copied, that stays where it is while it is open. */
typedef struct sterna_session {
  uint64_t opaque[8];
} sterna_session;

#define STERNA_SESSION_NAME_BYTES 48 /* With the 0 byte. */

/* Opens the session of this name for this rank: those ranks open it that talk in it, in any order
 * and at any time. Messages that come before it is open here wait for it. The same name opened
 * twice is one session. Asks node 0, once each time. In a program between sterna_start and
 * sterna_stop. Switches. Fails with INVALID_ARGUMENT (no name, or one that is too long),
 * NOT_STARTED, CLOSED (node 0 is gone), OUT_OF_MEMORY, DEADLOCK (in a callback of a message). */
sterna_status sterna_session_open(sterna_session* session, const char* name) STERNA_NOEXCEPT;
/* The memory is the program's again. What has come and was not received stays, for who opens it
 * anew. BUSY: requests of it are started. */
sterna_status sterna_session_close(sterna_session* session) STERNA_NOEXCEPT;

/* As the calls of message.h with these names. */
sterna_status sterna_session_send(sterna_session* session, uint32_t rank, int32_t tag,
                                  const void* data, size_t bytes) STERNA_NOEXCEPT;
sterna_status sterna_session_receive(sterna_session* session, uint32_t rank, int32_t tag,
                                     void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_session_probe(sterna_session* session, uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_session_matched_probe(sterna_session* session, uint32_t rank, int32_t tag,
                                           sterna_matched_message** message,
                                           sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_session_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                       uint32_t mask, uint64_t timeout_ns,
                                       sterna_envelope* envelope) STERNA_NOEXCEPT;
sterna_status sterna_session_matched_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                               uint32_t mask, uint64_t timeout_ns,
                                               sterna_matched_message** message,
                                               sterna_envelope* envelope) STERNA_NOEXCEPT;

/* The request is one of this session; NULL: of that without a name, as at first. BUSY: it is
 * started.
 */
sterna_status sterna_message_set_session(sterna_message_request* request,
                                         sterna_session* session) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_SESSION_H */
