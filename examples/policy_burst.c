/* A scheduling policy written by its user: bubbles are pulled down to their level, and burst there
 * (BubbleSched, figure 5). Then two bubbles of threads run under it. */
#include <stdio.h>
#include <sterna/bubble.h>
#include <sterna/held.h>
#include <sterna/place.h>
#include <sterna/policy.h>
#include <sterna/sterna.h>
#include <string.h>

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

enum { kBubbles = 2, kThreads = 4, kPlaceBytes = 32 };

/* Notes where it is queued at its end: where its bubble has burst. */
static void work(void* place) {
  for (int i = 0; i < 100; ++i) {
    sterna_thread_yield();
  }
  sterna_held_place(sterna_held_thread(sterna_thread_self()), place, kPlaceBytes);
}

/* All threads of a bubble have been at one place, of the level that it has. */
static int have_burst_together(char places[kThreads][kPlaceBytes]) {
  sterna_place_info info = {.size_bytes = sizeof info};
  for (int k = 0; k < kThreads; ++k) {
    if (strcmp(places[k], places[0]) != 0) {
      return 0;
    }
  }
  return sterna_place_query(places[0], &info) == STERNA_SUCCESS && info.depth == 1;
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
  static char places[kBubbles][kThreads][kPlaceBytes];
  sterna_bubble* bubbles[kBubbles];
  int failed = 0;
  for (int i = 0; i < kBubbles; ++i) {
    sterna_bubble_create(&bubbles[i]);
    sterna_bubble_set_level(bubbles[i], 1); /* The parts of the machine: nodes, say. */
    for (int k = 0; k < kThreads; ++k) {
      sterna_bubble_add_thread(bubbles[i], NULL, work, places[i][k]);
    }
    sterna_bubble_submit(bubbles[i]);
  }
  for (int i = 0; i < kBubbles; ++i) {
    sterna_bubble_join(bubbles[i]);
    const int is_right = have_burst_together(places[i]);
    printf("bubble %d has burst at %s%s\n", i, places[i][0], is_right ? "" : ", not all at their level");
    failed += !is_right;
  }
  sterna_stop();
  return failed;
}
