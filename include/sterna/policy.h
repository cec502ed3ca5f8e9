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

/* Events: NULL for those without interest, but for submit. The texts stay valid for ever. */
typedef struct sterna_policy {
  size_t size_bytes; /* sizeof(sterna_policy). */
  const char* name;  /* Without brackets, commas and spaces. */
  const char* summary;
  void* data;       /* For the events, if there is no instantiate. */
  uint64_t tick_ns; /* Time between two ticks; 0: none. */
  /* An outermost thread or bubble is there: put it somewhere. */
  void (*submit)(sterna_view* view, sterna_entity* entity, void* data);
  /* The search of `processor` met a thread at `entity`: itself, or the closed bubble around it that
   * lies at `here`: around the processor, unless the program wants the thread elsewhere than what
   * is around it. 1: the plan has changed, search again. */
  int (*meet)(sterna_view* view, sterna_entity* entity, sterna_place here, sterna_place processor,
              void* data);
  /* `processor` found nothing up to the whole machine. 1: it may now. */
  int (*idle)(sterna_view* view, sterna_place processor, void* data);
  /* tick_ns have passed (NULL), or the time slice of a bubble is over. */
  void (*tick)(sterna_view* view, sterna_entity* expired, void* data);
  /* An entity leaves: forget it. With it each end of a thread is an event of the policy, and not only
   * of its bubble: NULL unless the policy remembers entities. */
  void (*leave)(sterna_view* view, sterna_entity* entity, void* data);

  /* Programs that were compiled before what follows was here give a smaller size_bytes. */

  /* What may follow the name in brackets, for people: "slice=MS". NULL or empty: nothing may. */
  const char* arguments;
  /* Each use of the name in the text of a policy is an instance: "parts(numa,mine,mine)" has one
   * for each node. Before any event of it, and without a lock: it may allocate. `data` is the
   * policy's, `arguments` what stands in the brackets (never NULL, valid during the call), and what
   * it stores in *instance its events get as their data. Another status than SUCCESS: what was to
   * rule (sterna_start, sterna_policy_set) fails, and OUT_OF_MEMORY stays that. */
  sterna_status (*instantiate)(void* data, const char* arguments, void** instance);
  /* The end of an instance, after its last event, without a lock. */
  void (*destroy)(void* instance);
  /* A thread became ready, and is queued next, where it is put then. Takes the scheduler's lock at
   * every wake-up of every thread of a bubble. */
  void (*wake)(sterna_view* view, sterna_entity* thread, void* data);
  /* All is to be placed anew: the policy begins to rule, sterna_bubble_shake, a processor came or
   * went. NULL: each outermost entity is gathered and comes to submit again. */
  void (*shake)(sterna_view* view, void* data);
  /* The program is in that phase now: sterna_bubble_phase. */
  void (*phase)(sterna_view* view, uint32_t number, void* data);
  /* An outermost bubble has grown by what its threads created (sterna_thread_options.auto_bubbles):
   * it holds twice as much as when it was submitted, or at the last call. What came later is where
   * it is. A bubble that was made for such threads, and is outermost, comes to submit again. */
  void (*grow)(sterna_view* view, sterna_entity* entity, void* data);
} sterna_policy;

/* Adds a policy; its content is copied. Any thread. Fails with INVALID_ARGUMENT (size_bytes, name,
 * no submit, destroy without instantiate, arguments without it, a name that is taken),
 * OUT_OF_MEMORY, BUSY (32 are the most). */
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

/* Plans something that waits elsewhere for `processor`, from the nearest place that has more than
 * its own idle processors are about to take: a thread, or a bubble, whole if something is left to
 * do there, else opened, and half of it. Not from outside of `within`, a place around `processor`
 * (STERNA_NO_PLACE: the part of the machine of this policy). What is settled, or may not run there,
 * stays. 1: it did; 0: there is nothing that may come. All that `idle` needs in many policies. */
int sterna_view_steal(sterna_view* view, sterna_place processor,
                      sterna_place within) STERNA_NOEXCEPT;
/* The processors of `place` that have nothing to run, or are about to sleep, come to `idle` once
 * more: when it would answer otherwise than it did, although nothing became ready since. */
void sterna_view_ask_again(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;

/* What a bubble holds, one after the other; NULL after the last, and for a thread. */
sterna_entity* sterna_entity_first(sterna_entity* bubble) STERNA_NOEXCEPT;
sterna_entity* sterna_entity_next(sterna_entity* entity) STERNA_NOEXCEPT;
/* The bubble that holds it; NULL: it is outermost. */
sterna_entity* sterna_entity_holder(const sterna_entity* entity) STERNA_NOEXCEPT;
int sterna_entity_is_bubble(const sterna_entity* entity) STERNA_NOEXCEPT;
/* Depth in the machine (0: all of it) that the program gave it; UINT32_MAX: none. */
uint32_t sterna_entity_level(const sterna_entity* entity) STERNA_NOEXCEPT;
/* Where it was put last: a place, STERNA_PLACE_ASIDE, or STERNA_NO_PLACE: with its bubble. */
sterna_place sterna_entity_place(const sterna_entity* entity) STERNA_NOEXCEPT;
/* 1: it may run on that processor: the program has asked for no place (innermost wish first), or
 * for one around it. Of a bubble: as far as what it holds asks for none. 0: not, or no such. */
int sterna_entity_may_run(sterna_view* view, const sterna_entity* entity,
                          sterna_place processor) STERNA_NOEXCEPT;
/* The smallest place in the part of this policy that the program allows it. */
sterna_place sterna_entity_allowed(sterna_view* view, const sterna_entity* entity) STERNA_NOEXCEPT;
/* 1: the program wants it to stay where it is (sterna_held_set_settled): balance without it. */
int sterna_entity_is_settled(const sterna_entity* entity) STERNA_NOEXCEPT;
/* A word of the policy's own with each entity: 0 when it comes, and when another policy rules. */
uint64_t sterna_entity_word(const sterna_entity* entity) STERNA_NOEXCEPT;
void sterna_entity_set_word(sterna_entity* entity, uint64_t word) STERNA_NOEXCEPT;
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
/* What is in a bubble, and has no place of its own, comes out at `place`; without effect for a
 * thread, or a place that does not exist. */
void sterna_bubble_burst(sterna_view* view, sterna_entity* bubble,
                         sterna_place place) STERNA_NOEXCEPT;
/* All that a bubble holds returns into it, at any depth; its slice is cancelled. */
void sterna_bubble_gather(sterna_view* view, sterna_entity* bubble) STERNA_NOEXCEPT;
/* After so much time of its running threads together comes `tick` with the bubble, and again after
 * as much; looked at every tick_ns, which must not be 0. What the program set with
 * sterna_bubble_set_slice wins. Until the bubble is gathered or another policy rules; 0: no more.
 */
void sterna_view_set_slice(sterna_view* view, sterna_entity* bubble,
                           uint64_t slice_ns) STERNA_NOEXCEPT;

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
/* Workers below it that run nothing: what waits there is about to be taken. */
uint32_t sterna_place_free_workers(sterna_view* view, sterna_place place) STERNA_NOEXCEPT;
/* The threads in its queue (or aside), the next one first, of all policies: the first `capacity`
 * to `threads`, and how many there are. Processors may take them meanwhile. */
uint32_t sterna_place_list_waiting(sterna_view* view, sterna_place place, sterna_entity** threads,
                                   uint32_t capacity) STERNA_NOEXCEPT;
/* The first of this policy's that waits in the queue of `place` and may move to `processor`: the
 * thread, or the outermost closed bubble around it; nothing that is settled. NULL: none. */
sterna_entity* sterna_place_movable(sterna_view* view, sterna_place place,
                                    sterna_place processor) STERNA_NOEXCEPT;
/* Calls `see` for the places around `from`, near ones first: those beside it in its holder and all
 * inside them, then those beside the holder, as far as `within`, a place around `from`
 * (STERNA_NO_PLACE: the part of this policy). Not for `from`, what is inside it and what is around
 * it. Until one answers something else than 0: that answer; 0: none did. */
typedef int (*sterna_place_see)(sterna_view* view, sterna_place place, void* context);
int sterna_place_browse(sterna_view* view, sterna_place from, sterna_place within,
                        sterna_place_see see, void* context) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_POLICY_H */
