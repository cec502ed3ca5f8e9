/* Bubbles: threads that belong together, described before they run.
 *
 * A bubble tells the scheduler which threads share data; the policy (sterna_options.policy) decides
 * where they run. Bubbles nest, and describe affinity, not a place: the same program runs
 * unchanged on another machine. held.h moves what runs from one to another, and has places for who
 * needs them. Any thread may build a bubble, one at a time; not in mobile ranks
 * (UNSUPPORTED).
 *
 * Bubbles from filiation (Thibault, BubbleSched, 5.2) need none of these calls. With the setting
 * auto_bubbles=filiation, or for a thread with sterna_thread_options.auto_bubbles, the threads that
 * a thread creates are held by a bubble beside it. It is there from its first child to the end of
 * the last one, longer than its creator if need be; generations nest, from the 60th on they stay
 * with their creators. Threads that a kernel thread creates are outermost. A place of
 * sterna_thread_options holds in a bubble, and so does `worker` with is_bound, unless several
 * workers share its processor: such a thread is in no bubble. `worker` alone is up to the policy.
 */
#ifndef STERNA_BUBBLE_H
#define STERNA_BUBBLE_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_bubble sterna_bubble; /* Opaque. */

/* Makes an empty bubble, the caller's until join or destroy. Fails with INVALID_ARGUMENT,
 * OUT_OF_MEMORY, NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_bubble_create(sterna_bubble** bubble) STERNA_NOEXCEPT;

/* A thread that starts when the outermost bubble is submitted; at once, where its bubble is, if
 * that runs: then a thread of the outermost bubble calls, or the one that is going to join it, so
 * that it is not being freed. sterna_thread_create with options.bubble is the same, and gives a
 * handle; thread.h says what `options` (may be NULL) mean in a bubble. Fails as that. */
sterna_status sterna_bubble_add_thread(sterna_bubble* bubble, const sterna_thread_options* options,
                                       sterna_thread_function function,
                                       void* argument) STERNA_NOEXCEPT;

/* `child` belongs to `bubble` from now on: it is submitted, joined and destroyed with it. If that
 * runs, its threads start at once, as those of add_thread. Fails with INVALID_ARGUMENT (it has a
 * holder, holds `bubble`, or more than 60 would be nested: sterna_error_detail names the rule),
 * BUSY (the child is submitted already: sterna_held_move; the bubble has ended), OUT_OF_MEMORY. */
sterna_status sterna_bubble_add_bubble(sterna_bubble* bubble, sterna_bubble* child) STERNA_NOEXCEPT;

/* The calling thread, which the bubble itself holds, waits until all of those have called: at once
 * reusable. Threads that are added take part from then on, those that end no more. *is_last (may
 * be NULL): 1 for the last to call; for nobody where the last one ended instead. Switches; no
 * cancellation point. Fails with INVALID_ARGUMENT. */
sterna_status sterna_bubble_barrier(sterna_bubble* bubble, int* is_last) STERNA_NOEXCEPT;

/* For people: sterna top, traces, refusals. Copied, the first 31 bytes count; NULL: none. Fails
 * with INVALID_ARGUMENT, BUSY (it runs). */
sterna_status sterna_bubble_set_name(sterna_bubble* bubble, const char* name) STERNA_NOEXCEPT;

/* What policies look at, before the bubble is submitted or while it runs; any thread. The depth in
 * the machine (0: all of it) at which it bursts (sterna_held_set_level); the priority of its
 * threads, STERNA_PRIORITY_... (thread.h), a bubble in a bubble may differ: it counts at once, also
 * for the policy priorities(...); the time slice after which the policy burst regenerates it, in ns
 * of all its threads together. Fail with INVALID_ARGUMENT, NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_bubble_set_level(sterna_bubble* bubble, uint32_t level) STERNA_NOEXCEPT;
sterna_status sterna_bubble_set_priority(sterna_bubble* bubble, uint32_t priority) STERNA_NOEXCEPT;
sterna_status sterna_bubble_set_slice(sterna_bubble* bubble, uint64_t slice_ns) STERNA_NOEXCEPT;

/* 0: no foreign thread preempts what is inside, at any depth: its threads keep their workers until
 * they call something that switches, whatever the setting preemption says, and policies that plan
 * them elsewhere wait for that. Before it is submitted or while it runs: at once. 1 is what bubbles
 * begin with. Fails as set_level. */
sterna_status sterna_bubble_set_preemptible(sterna_bubble* bubble,
                                            int is_preemptible) STERNA_NOEXCEPT;

/* The bubble uses that memory, whole pages of it, which stays mapped until the bubble is joined:
 * the policy memory sends it to the memory node where most of that is now, and, where the load does
 * not allow that, workers without work bring the pages to its node, piece by piece (move_pages).
 * Other policies take no notice, nor do machines of one node. Again for more memory. Any thread;
 * does not switch. Fails with INVALID_ARGUMENT, OUT_OF_MEMORY, NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_bubble_own_memory(sterna_bubble* bubble, void* base,
                                       size_t bytes) STERNA_NOEXCEPT;

/* The program is in that phase now: see the policy phases(...). Any thread; does not switch. Fails
 * with NOT_STARTED, UNSUPPORTED. */
sterna_status sterna_bubble_phase(uint32_t number) STERNA_NOEXCEPT;

/* The policy places everything anew. Any thread; does not switch. Fails as phase. */
sterna_status sterna_bubble_shake(void) STERNA_NOEXCEPT;

/* Asks the policy for the places, then starts all threads. For outermost bubbles. Fails with
 * INVALID_ARGUMENT (it has a holder), BUSY (submitted already), OUT_OF_MEMORY: then some threads
 * run, and join waits for those. */
sterna_status sterna_bubble_submit(sterna_bubble* bubble) STERNA_NOEXCEPT;

/* The same, to a policy of choice(POLICY,...), by its name or its whole text: "gang",
 * "gang(numa)". It is ruled by that one as long as choice rules, through shakes and phases; bubbles
 * of plain submit by the first. Also fails with NOT_FOUND: the policy in force has no such one. */
sterna_status sterna_bubble_submit_to(sterna_bubble* bubble, const char* policy) STERNA_NOEXCEPT;

/* Waits until every thread that is in it has ended, then frees the bubble and those in it, but for
 * threads that were created with a handle, which their owner joins. Kernel threads too. Switches.
 * Fails with INVALID_ARGUMENT (not submitted, or it has a holder), DEADLOCK (a thread that it holds
 * calls), BUSY (somebody is joining it). */
sterna_status sterna_bubble_join(sterna_bubble* bubble) STERNA_NOEXCEPT;

/* Frees an outermost bubble that was not submitted, and those in it. Who joins one of its threads,
 * now or later, is told CANCELLED. NULL is allowed. May switch. Fails as join. */
sterna_status sterna_bubble_destroy(sterna_bubble* bubble) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_BUBBLE_H */
