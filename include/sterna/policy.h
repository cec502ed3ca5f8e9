/* Scheduling policies written by programs.
 *
 * A policy hears of events and says where threads and bubbles go; the mechanism (queues, switches,
 * wake-ups, locks) is Sterna's. After the interface of BubbleSched (Thibault, Namyst, Wacrenier,
 * TSI 2008, section 3.3, figures 4 to 6): ma_bubble_schedule is `meet`, ma_bubble_tick `tick`,
 * ma_bubble_idle `idle`, get_entity and put_entity have kept their names. A place is a part of the
 * machine with its run queue (the paper's runqueue): the processors below it take from there.
 *
 * Register it, and name it in sterna_options.policy or sterna_policy_set, alone or in a
 * combination: "fallback(mine,steal)". All events come one at a time, with the scheduler's lock
 * held, on any kernel thread: they must not block, switch, allocate or call anything of Sterna but
 * what is declared here with a view, which is valid until the event returns. What is put takes
 * effect then. An entity that was got and not put stays where it was, and is reported.
 */
#ifndef STERNA_POLICY_H
#define STERNA_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sterna_view sterna_view;     /* What a policy sees. Opaque. */
typedef struct sterna_entity sterna_entity; /* A thread or a bubble. Opaque. */
typedef uint32_t sterna_place;

#define STERNA_NO_PLACE UINT32_MAX          /* Of an entity: inside its bubble. */
#define STERNA_PLACE_ASIDE (UINT32_MAX - 1) /* A queue that no processor looks at. */

/* Events: NULL for those without interest, but for submit. */
typedef struct sterna_policy {
  size_t size_bytes; /* sizeof(sterna_policy). */
  const char* name;  /* Without brackets, commas and spaces. Both stay valid for ever. */
  const char* summary;
  void* data;       /* For the events. */
  uint64_t tick_ns; /* Time between two ticks; 0: none. */
  /* An outermost thread or bubble is there: put it somewhere. */
  void (*submit)(sterna_view* view, sterna_entity* entity, void* data);
  /* The search of `processor` met a thread at `entity`: itself, or the closed bubble around it that
   * lies at `here`. 1: the plan has changed, search again. */
  int (*meet)(sterna_view* view, sterna_entity* entity, sterna_place here, sterna_place processor,
              void* data);
  /* `processor` found nothing up to the whole machine. 1: it may now. */
  int (*idle)(sterna_view* view, sterna_place processor, void* data);
  /* tick_ns have passed (NULL), or the time slice of a bubble is over. */
  void (*tick)(sterna_view* view, sterna_entity* expired, void* data);
  /* An entity leaves: forget it. */
  void (*leave)(sterna_view* view, sterna_entity* entity, void* data);
} sterna_policy;

/* Adds a policy; its content is copied. Any thread. Fails with INVALID_ARGUMENT (size_bytes, name,
 * no submit, a name that is taken), OUT_OF_MEMORY, BUSY (32 are the most). */
sterna_status sterna_policy_register(const sterna_policy* policy) STERNA_NOEXCEPT;

/* Calls `visit` for each policy that there is, also those of the program: its name, what may follow
 * in brackets (empty: nothing) and what it does. Any thread, at any time. Fails with
 * INVALID_ARGUMENT. */
typedef void (*sterna_policy_visit)(void* context, const char* name, const char* arguments,
                                    const char* summary);
sterna_status sterna_policy_list(sterna_policy_visit visit, void* context) STERNA_NOEXCEPT;

/* The policy that rules from now on: "steal", "gang(numa,slice=5)". Before sterna_start it is the
 * one to begin with, unless sterna_options.policy or the setting `policy` (which wins over both)
 * names another. Afterwards everything is placed anew by it, at once: what waits changes its queue,
 * what runs elsewhere than it should follows at a call that may switch. Bubbles keep what the
 * program said of them. Any thread, kernel threads too, before sterna_start the initial one; does
 * not switch. Fails with INVALID_ARGUMENT (sterna_error_detail says what is wrong with the text,
 * and the former one goes on), OUT_OF_MEMORY, UNSUPPORTED (in a mobile rank). */
sterna_status sterna_policy_set(const char* policy) STERNA_NOEXCEPT;

/* The text of the policy that rules, or that sterna_start would begin with if neither its options
 * nor the launcher named one, and a 0 byte, as much as fits. Any thread. Fails with
 * INVALID_ARGUMENT, TRUNCATED, UNSUPPORTED (in a mobile rank); SYSTEM: the configuration file
 * cannot be read. */
sterna_status sterna_policy_get(char* buffer, size_t bytes) STERNA_NOEXCEPT;

/* The outermost entities of this policy, one after the other; NULL after the last. */
sterna_entity* sterna_view_first(sterna_view* view) STERNA_NOEXCEPT;
sterna_entity* sterna_view_next(sterna_view* view, sterna_entity* entity) STERNA_NOEXCEPT;
/* The first of them that was put at that place (or aside); NULL: none. */
sterna_entity* sterna_view_at(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;
/* The next one after `entity` (NULL: the first), round and round, of which something waits for a
 * processor, whoever looks there; `entity` itself comes last; NULL: none. */
sterna_entity* sterna_view_next_ready(sterna_view* view, sterna_entity* entity) STERNA_NOEXCEPT;
uint64_t sterna_view_now_ns(sterna_view* view) STERNA_NOEXCEPT;

/* What a bubble holds, one after the other; NULL after the last, and for a thread. */
sterna_entity* sterna_entity_first(sterna_entity* bubble) STERNA_NOEXCEPT;
sterna_entity* sterna_entity_next(sterna_entity* entity) STERNA_NOEXCEPT;
int sterna_entity_is_bubble(const sterna_entity* entity) STERNA_NOEXCEPT;
/* Depth in the machine (0: all of it) that the program gave it; UINT32_MAX: none. */
uint32_t sterna_entity_level(const sterna_entity* entity) STERNA_NOEXCEPT;
/* Where it was put last: a place, STERNA_PLACE_ASIDE, or STERNA_NO_PLACE: with its bubble. */
sterna_place sterna_entity_place(const sterna_entity* entity) STERNA_NOEXCEPT;
/* Over all that it holds: load, threads, those in queues, those on processors. */
uint64_t sterna_entity_load(sterna_view* view, const sterna_entity* entity) STERNA_NOEXCEPT;
uint32_t sterna_entity_threads(sterna_view* view, const sterna_entity* entity) STERNA_NOEXCEPT;
uint32_t sterna_entity_ready(sterna_view* view, const sterna_entity* entity) STERNA_NOEXCEPT;
uint32_t sterna_entity_running(sterna_view* view, const sterna_entity* entity) STERNA_NOEXCEPT;
/* The same for attribute 0 to 3 of stats.h, for the memory that is on a place (of NUMA node or
 * machine; STERNA_NO_PLACE: anywhere), and the smallest place that has all processors on which they
 * ran last; STERNA_NO_PLACE: none has run. */
uint64_t sterna_entity_attribute(sterna_view* view, const sterna_entity* entity,
                                 uint32_t index) STERNA_NOEXCEPT;
uint64_t sterna_entity_memory(sterna_view* view, const sterna_entity* entity,
                              sterna_place place) STERNA_NOEXCEPT;
sterna_place sterna_entity_last_place(sterna_view* view,
                                      const sterna_entity* entity) STERNA_NOEXCEPT;

/* Takes it from where it is; put it back before the event ends. NULL: nothing, as in put. */
void sterna_entity_get(sterna_view* view, sterna_entity* entity) STERNA_NOEXCEPT;
/* Into the queue of `place`, with all that is inside it; STERNA_PLACE_ASIDE: aside;
 * STERNA_NO_PLACE: into its bubble. Another place that does not exist means the bubble, too. */
void sterna_entity_put(sterna_view* view, sterna_entity* entity,
                       sterna_place place) STERNA_NOEXCEPT;
/* All that a bubble holds returns into it, at any depth. */
void sterna_bubble_gather(sterna_view* view, sterna_entity* bubble) STERNA_NOEXCEPT;

/* The part of the machine of this policy; the part around a place (STERNA_NO_PLACE for the whole
 * machine); those inside it, from 0 (STERNA_NO_PLACE: no such); its depth; workers below it;
 * threads in its queue. */
sterna_place sterna_view_domain(sterna_view* view) STERNA_NOEXCEPT;
sterna_place sterna_place_holder(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;
sterna_place sterna_place_inner(sterna_view* view, sterna_place place,
                                uint32_t index) STERNA_NOEXCEPT;
uint32_t sterna_place_level(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;
uint32_t sterna_place_workers(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;
uint32_t sterna_place_waiting(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_POLICY_H */
