/* A scheduling policy written by its user: bubbles are pulled down to their level, and burst there
 * (BubbleSched, figure 5). Then two bubbles of threads run under it. */
#include <stdatomic.h>
#include <stdio.h>
#include <sterna/bubble.h>
#include <sterna/policy.h>
#include <sterna/sterna.h>

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  sterna_entity_put(view, entity, sterna_view_domain(view));
}

static int meet(sterna_view* view, sterna_entity* entity, sterna_place here, sterna_place processor,
                void* data) {
  (void)data;
  sterna_place wanted = processor;
  while (wanted != here && sterna_place_level(view, wanted) > sterna_entity_level(entity)) {
    wanted = sterna_place_holder(view, wanted);
  }
  if (sterna_entity_level(entity) != UINT32_MAX && wanted != here) {
    sterna_entity_put(view, entity, wanted); /* Too high: down towards this processor. */
    return 1;
  }
  if (!sterna_entity_is_bubble(entity)) {
    return 0; /* A thread, which runs now. */
  }
  for (entity = sterna_entity_first(entity); entity; entity = sterna_entity_next(entity)) {
    sterna_entity_put(view, entity, here);
  }
  return 1;
}

static atomic_int count;

static void work(void* argument) {
  (void)argument;
  for (int i = 0; i < 100; ++i) {
    sterna_thread_yield();
  }
  atomic_fetch_add(&count, 1);
}

int main(void) {
  const sterna_policy burst = {.size_bytes = sizeof burst,
                               .name = "my-burst",
                               .summary = "bubbles burst at their level",
                               .submit = submit,
                               .meet = meet};
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.policy = "my-burst";
  if (sterna_policy_register(&burst) != STERNA_SUCCESS ||
      sterna_start(&options) != STERNA_SUCCESS) {
    return 1;
  }
  sterna_bubble* bubbles[2];
  for (int i = 0; i < 2; ++i) {
    sterna_bubble_create(&bubbles[i]);
    sterna_bubble_set_level(bubbles[i], 1); /* The parts of the machine: nodes, say. */
    for (int k = 0; k < 4; ++k) {
      sterna_bubble_add_thread(bubbles[i], NULL, work, NULL);
    }
    sterna_bubble_submit(bubbles[i]);
  }
  for (int i = 0; i < 2; ++i) {
    sterna_bubble_join(bubbles[i]);
  }
  printf("%d threads have run\n", atomic_load(&count));
  sterna_stop();
  return atomic_load(&count) == 8 ? 0 : 1;
}
