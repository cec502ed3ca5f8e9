/* Seeds: threads that become threads only when somebody runs them.
 *
 * sterna_seed_plant is a sterna_thread_create that costs some nanoseconds: for recursion and loops
 * whose pieces are small. Whoever plants a seed joins it. Usually nobody has begun it by then, and
 * the join runs it as a call on the planter's stack, as part of the planter: sterna_thread_self,
 * keys and cancellation are the planter's. An idle worker, or the planter's own one when all its
 * threads wait, makes it a thread before that. So a seed may wait for whatever a thread may wait
 * for, but not for what its planter does after the join. (Lazy task creation: Mohr, Kranz,
 * Halstead, 1991; seeds of the original Marcel.)
 *
 *     sterna_seed left;
 *     sterna_seed_plant(&left, sort, &lower_half);
 *     sort(&upper_half);
 *     sterna_seed_join(&left);
 *
 * Mobile ranks create no threads, and no seeds (UNSUPPORTED).
 */
#ifndef STERNA_SEED_H
#define STERNA_SEED_H

#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lies where its planter wants, for instance on its stack, and stays there until it is joined. */
typedef struct sterna_seed {
  void* opaque[8];
} sterna_seed;

/* `function(argument)` is run once, by the join or before. Any thread; on a kernel thread the seed
 * is a thread from the start. In the thread of a bubble it becomes one of that bubble, if it
 * becomes one: from the start only where any priority but the normal one is in use, or the policy
 * wants to hear of wake-ups. A seed of a thread that ends (sterna_thread_exit, cancelled) before it
 * has joined it is joined by its end. Does not switch. Fails with INVALID_ARGUMENT, BUSY (it is the
 * last one that the caller has planted, and not joined), NOT_STARTED, UNSUPPORTED, OUT_OF_MEMORY
 * (on a kernel thread only). */
sterna_status sterna_seed_plant(sterna_seed* seed, sterna_thread_function function,
                                void* argument) STERNA_NOEXCEPT;

/* The same; options that a call on the planter's stack cannot have (all but at most 32 KiB of
 * stack) make it a thread from the start. Fails also with INVALID_ARGUMENT for options that
 * sterna_thread_create refuses, and for is_detached, stack, bubble and has_own_locals. */
sterna_status sterna_seed_plant_with(sterna_seed* seed, const sterna_thread_options* options,
                                     sterna_thread_function function,
                                     void* argument) STERNA_NOEXCEPT;

/* Waits for the end of the seed, or runs it. By the thread that planted it, once. No cancellation
 * point: an order counts from the next one. Runs it as a thread when the caller has less than 32
 * KiB of stack left, or half of it. Switches. Returns CANCELLED if it was a thread that was
 * cancelled. Fails with INVALID_ARGUMENT (not planted by the caller, joined before). */
sterna_status sterna_seed_join(sterna_seed* seed) STERNA_NOEXCEPT;

/* Takes back a seed that nobody has begun: it does not run, and counts as joined. By the thread
 * that planted it. Does not switch. Fails with BUSY (begun: join it), INVALID_ARGUMENT. */
sterna_status sterna_seed_withdraw(sterna_seed* seed) STERNA_NOEXCEPT;

/* The thread of a seed that is one from the start, for control.h; NULL for others. By the thread
 * that planted it, before its join. */
sterna_thread* sterna_seed_thread(const sterna_seed* seed) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_SEED_H */
