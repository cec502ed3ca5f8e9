/* What the policy of policy_calls.c sees of the machine and of a tree that sleeps: the bubble
 * `outer` with two threads, of loads 5 and 1, and a bubble with one more; the bubble `other`. */
#ifndef STERNA_TESTS_CAPI_POLICY_LOOK_H
#define STERNA_TESTS_CAPI_POLICY_LOOK_H

#include "held.h"
#include "sterna/policy.h"

static int failed_line;
static uint32_t worker_count;
static sterna_entity *outer_entity, *other_entity;

/* Within an event, where a test must not end its process. */
#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition) && failed_line == 0) {                                     \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      failed_line = __LINE__;                                                   \
    }                                                                           \
  } while (0)

static void look_at_places(sterna_view* view) {
  const sterna_place all = sterna_view_domain(view);
  const sterna_place inner = sterna_place_inner(view, all, 0);
  CHECK(sterna_place_holder(view, all) == STERNA_NO_PLACE);
  CHECK(sterna_place_level(view, all) == 0);
  CHECK(sterna_place_level(view, STERNA_NO_PLACE) == UINT32_MAX);
  CHECK(sterna_place_workers(view, all) == worker_count);
  CHECK(inner != STERNA_NO_PLACE && sterna_place_holder(view, inner) == all);
  CHECK(sterna_place_level(view, inner) == 1);
  CHECK(sterna_place_inner(view, all, 10000) == STERNA_NO_PLACE);
  CHECK(sterna_place_waiting(view, all) == 0);
  CHECK(sterna_place_list_waiting(view, all, NULL, 0) == 0);
  CHECK(sterna_place_free_workers(view, all) <= worker_count);
  CHECK(sterna_place_movable(view, all, inner) == NULL);
  CHECK(sterna_view_steal(view, inner, STERNA_NO_PLACE) == 0);
}

/* The processor of a worker, from the left. */
static sterna_place processor_of(sterna_view* view, uint32_t worker) {
  sterna_place place = sterna_view_domain(view);
  for (sterna_place inner = place; inner != STERNA_NO_PLACE;) {
    uint32_t i = 0;
    while ((inner = sterna_place_inner(view, place, i)) != STERNA_NO_PLACE &&
           sterna_place_workers(view, inner) <= worker) {
      worker -= sterna_place_workers(view, inner);
      ++i;
    }
    place = inner != STERNA_NO_PLACE ? inner : place;
  }
  return place;
}

static int count_place(sterna_view* view, sterna_place place, void* context) {
  CHECK(sterna_place_level(view, place) >= 1);
  ++*(int*)context;
  return place == processor_of(view, 1) ? 7 : 0;
}

static void look_at_entities(sterna_view* view) {
  sterna_entity* const a = sterna_entity_first(outer_entity);
  sterna_entity* const b = sterna_entity_next(a);
  sterna_entity* const inner = sterna_entity_next(b);
  const sterna_place all = sterna_view_domain(view);
  const sterna_place first = processor_of(view, 0);
  CHECK(sterna_view_first(view) == outer_entity);
  CHECK(sterna_view_next(view, outer_entity) == other_entity);
  CHECK(sterna_view_next(view, other_entity) == NULL);
  CHECK(sterna_entity_is_bubble(outer_entity) && !sterna_entity_is_bubble(a));
  CHECK(sterna_entity_is_bubble(inner) && sterna_entity_next(inner) == NULL);
  CHECK(sterna_entity_first(a) == NULL && sterna_entity_holder(a) == outer_entity);
  CHECK(sterna_entity_holder(sterna_entity_first(inner)) == inner);
  CHECK(sterna_entity_holder(outer_entity) == NULL);
  CHECK(sterna_entity_level(outer_entity) == 1 && sterna_entity_level(inner) == UINT32_MAX);
  CHECK(sterna_entity_load(view, outer_entity) == 5 + 1 + 1 && sterna_entity_load(view, a) == 5);
  CHECK(sterna_entity_threads(view, outer_entity) == 3 && sterna_entity_threads(view, a) == 1);
  CHECK(sterna_entity_ready(view, outer_entity) == 0);
  CHECK(sterna_entity_running(view, outer_entity) == 0);
  CHECK(sterna_entity_attribute(view, outer_entity, 2) == 70);
  CHECK(sterna_entity_attribute(view, other_entity, 2) == 0);
  CHECK(sterna_entity_memory(view, outer_entity, STERNA_NO_PLACE) == 0);
  /* It was submitted to the whole, ran there, and has slept since. */
  CHECK(sterna_entity_place(outer_entity) == all && sterna_entity_place(a) == STERNA_NO_PLACE);
  CHECK(sterna_view_at(view, all) == outer_entity);
  CHECK(sterna_place_inner(view, sterna_entity_last_place(view, a), 0) == STERNA_NO_PLACE);
  CHECK(sterna_place_workers(view, sterna_entity_last_place(view, outer_entity)) >= 1);
  CHECK(sterna_view_next_ready(view, NULL) == NULL);
  CHECK(sterna_view_now_ns(view) != 0);
  /* What the program has said of `other`: settled, on the first processor. */
  CHECK(sterna_entity_is_settled(other_entity) && !sterna_entity_is_settled(outer_entity));
  CHECK(sterna_entity_may_run(view, outer_entity, first));
  CHECK(sterna_entity_may_run(view, other_entity, first));
  CHECK(worker_count == 1 || !sterna_entity_may_run(view, other_entity, processor_of(view, 1)));
  CHECK(sterna_entity_allowed(view, other_entity) == first);
  CHECK(sterna_entity_allowed(view, outer_entity) == all);
  CHECK(sterna_entity_word(a) == 0);
  sterna_entity_set_word(a, 12);
  CHECK(sterna_entity_word(a) == 12);
}

#endif
