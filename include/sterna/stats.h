/* What is known of threads and bubbles: their load, numbers of the program's own, and sums of these
 * over all that a bubble holds.
 *
 * Policies weigh by the load, and read the rest (policy.h); so may the program (BubbleSched:
 * Thibault, Namyst, Wacrenier, TSI 2008, section 7; marcel_set_load, ma_task_stats_set of PM2). All
 * is about what held.h is about, threads of bubbles and bubbles, and fails as said there. Any
 * thread calls, kernel threads too; nothing switches.
 */
#ifndef STERNA_STATS_H
#define STERNA_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/held.h"
#include "sterna/status.h"
#include "sterna/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How much work the thread has, beside others: 1 unless sterna_thread_options.load or this call
 * says more; the load of a bubble is that of all threads in it. Policies that divide load (spread,
 * cache, memory, parts) look at it the next time that they place it: at once after
 * sterna_bubble_shake. Also fails with INVALID_ARGUMENT: 0. */
sterna_status sterna_thread_set_load(sterna_thread* thread, uint32_t load) STERNA_NOEXCEPT;

/* Numbers that mean something to the program and to a policy of its own, 0 in the beginning: of a
 * thread or of the bubble itself. Also fail with INVALID_ARGUMENT: `index` is not below
 * STERNA_ATTRIBUTES. add wraps around, so that a negative change subtracts. */
#define STERNA_ATTRIBUTES 4u
sterna_status sterna_held_set_attribute(sterna_held held, uint32_t index,
                                        uint64_t value) STERNA_NOEXCEPT;
sterna_status sterna_held_add_attribute(sterna_held held, uint32_t index,
                                        int64_t change) STERNA_NOEXCEPT;

/* What sterna_held_query and sterna_entity_attribute say of a bubble for that attribute, from now
 * on: synthesis(so_far, value) for all values in it, its own too, in no order that is promised;
 * of one value that itself; 0 where there is none. Values that were never set do not count. NULL:
 * their sum, as in the beginning. The function must not block, switch or call this library, and is
 * called by any worker, one at a time. Fails with INVALID_ARGUMENT (`index`), NOT_STARTED,
 * UNSUPPORTED. (stats of PM2; BubbleSched section 7: measures of the program's own.) */
typedef uint64_t (*sterna_synthesis)(uint64_t so_far, uint64_t value);
sterna_status sterna_attribute_synthesise(uint32_t index,
                                          sterna_synthesis synthesis) STERNA_NOEXCEPT;

/* For synthesise: the smaller, the greater of both. */
uint64_t sterna_synthesis_min(uint64_t so_far, uint64_t value) STERNA_NOEXCEPT;
uint64_t sterna_synthesis_max(uint64_t so_far, uint64_t value) STERNA_NOEXCEPT;

/* Of a thread, or of a bubble with all it holds, at one moment. Set size_bytes before. */
typedef struct sterna_held_stats {
  size_t size_bytes; /* sizeof(sterna_held_stats). */
  uint32_t threads;
  uint32_t ready;   /* Of these: wait for a processor. */
  uint32_t running; /* Are on one. What is left sleeps, or does not run yet. */
  uint32_t reserved;
  uint64_t load;
  uint64_t memory_bytes; /* Of sterna_bubble_own_memory. */
  uint64_t attributes[STERNA_ATTRIBUTES];
  char last_place[24]; /* The smallest that has all processors on which they ran last: "core:3";
                        * empty: none has run. */
} sterna_held_stats;

/* Walks over all that it holds. Also fails with INVALID_ARGUMENT (size_bytes). */
sterna_status sterna_held_query(sterna_held held, sterna_held_stats* stats) STERNA_NOEXCEPT;

/* How much of that memory is on the NUMA node `place` ("numa:1"), as far as that was measured, when
 * it was declared and when it moved. Also fails with NOT_FOUND, INVALID_ARGUMENT (no NUMA node). */
sterna_status sterna_held_memory_on(sterna_held held, const char* place,
                                    uint64_t* bytes) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_STATS_H */
