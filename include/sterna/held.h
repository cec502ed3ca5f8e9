/* Who holds a thread or a bubble, and where it is: asked and changed, also while it runs.
 *
 * BubbleSched (Thibault, Namyst, Wacrenier, TSI 2008, section 3.3, figure 9) inserts and removes
 * entities at any time: a thread that now works on the data of others is moved into their bubble,
 * and the policy keeps it near them. A call is about one `held`: a thread (of a bubble: its handle
 * is sterna_thread_self() there, or comes from sterna_thread_list) or a bubble. Any thread calls,
 * kernel threads too; nothing here switches, unless it says so. All fail with INVALID_ARGUMENT
 * (none of the two is set, or both; a thread that is gone), NOT_STARTED, UNSUPPORTED (in a mobile
 * rank; a thread that is in no bubble and was not put there by filiation, whose place is
 * sterna_thread_stay_at's; a thread of filiation that is not the caller), REFUSED (a thread that
 * has ended but for its last destructors). sterna_error_detail has the rule.
 */
#ifndef STERNA_HELD_H
#define STERNA_HELD_H

#include <stddef.h>

#include "sterna/bubble.h"
#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What bubbles hold: one of the two is not NULL. */
typedef struct sterna_held {
  sterna_thread* thread;
  sterna_bubble* bubble;
} sterna_held;

static inline sterna_held sterna_held_thread(sterna_thread* thread) {
  sterna_held held = {NULL, NULL};
  held.thread = thread;
  return held;
}

static inline sterna_held sterna_held_bubble(sterna_bubble* bubble) {
  sterna_held held = {NULL, NULL};
  held.bubble = bubble;
  return held;
}

/* *holder is the bubble that holds it directly; NULL: none of the program's. It may have changed
 * when the call returns, if others move it. */
sterna_status sterna_held_holder(sterna_held held, sterna_bubble** holder) STERNA_NOEXCEPT;

/* What a move changes at once. */
typedef enum sterna_move {
  STERNA_MOVE_NOW = 0, /* It goes where its new bubble is; out of all: where the policy says. */
  STERNA_MOVE_STAY = 1 /* It stays where it was planned, until the policy plans it anew: shake,
                        * stealing, the end of a slice. */
} sterna_move;

/* `holder` holds it from now on, with all that is in it, and waits for it in its join and, for a
 * thread, at its barrier; the one that held it does not any more. Both run, or neither does; what
 * does not run yet starts in a bubble that does. A bubble that is moved is no more for the program
 * to join. holder NULL: out of all bubbles. A bubble is outermost then and is joined by itself; a
 * thread is detached, and freed when it ends, unless it was created with a handle, which stays to
 * be joined. A thread of filiation, which moves itself, stays its creator's to join: no join or
 * barrier of `holder` waits for it, and where `holder` is joined before it ends it is in no bubble
 * again. Also fails with INVALID_ARGUMENT (it holds `holder`, or more than 60 would be nested), BUSY
 * (it waits at the barrier of its bubble; it runs and `holder` does not; somebody joins it; `holder`
 * has ended and is being joined; a thread that does not run yet goes into a bubble only). */
sterna_status sterna_held_move(sterna_held held, sterna_bubble* holder,
                               sterna_move move) STERNA_NOEXCEPT;

/* It, with all that it holds, stays within that place (sterna_thread_options.place) from now on,
 * whatever policies plan; NULL: anywhere again. Before it is submitted or later: who runs elsewhere
 * follows at a call that may switch. NOT_FOUND: no such place, or no worker there. */
sterna_status sterna_held_set_place(sterna_held held, const char* place) STERNA_NOEXCEPT;

/* A bubble that is not submitted begins there; what runs goes there now, with all that it holds.
 * Later the policy may plan otherwise. NOT_FOUND. */
sterna_status sterna_held_begin_at(sterna_held held, const char* place) STERNA_NOEXCEPT;

/* The same, where `neighbour` is planned now. BUSY: that is aside, or does not run yet. */
sterna_status sterna_held_begin_beside(sterna_held held, sterna_held neighbour) STERNA_NOEXCEPT;

/* Where it is queued next: "machine:0", "numa:1", "aside"; a thread may still run elsewhere. And a
 * 0 byte, as much as fits: TRUNCATED. */
sterna_status sterna_held_place(sterna_held held, char* buffer, size_t bytes) STERNA_NOEXCEPT;

/* The depth in the machine (0: all of it) at which a bubble bursts, or to which a thread comes down
 * to run, where the policy looks at it (burst); STERNA_NO_LEVEL, the default: the policy decides. A
 * depth that the machine does not have counts as its deepest. Before it is submitted or later: it
 * counts when the policy next meets it, at once after sterna_bubble_shake. */
#define STERNA_NO_LEVEL 0xffffffffu
sterna_status sterna_held_set_level(sterna_held held, uint32_t level) STERNA_NOEXCEPT;
sterna_status sterna_held_level(sterna_held held, uint32_t* level) STERNA_NOEXCEPT;

/* Settled: no policy takes it, or what it holds, from where it is in order to balance. */
sterna_status sterna_held_set_settled(sterna_held held, int is_settled) STERNA_NOEXCEPT;
sterna_status sterna_held_is_settled(sterna_held held, int* is_settled) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_HELD_H */
