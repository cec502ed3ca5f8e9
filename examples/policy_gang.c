/* A gang scheduler written by its user (BubbleSched, figure 6): one bubble at a time has the
 * machine, for a time slice. Then three gangs share it. */
#include <stdatomic.h>
#include <stdio.h>
#include <sterna/bubble.h>
#include <sterna/policy.h>
#include <sterna/sterna.h>

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  sterna_entity_put(view, entity, STERNA_PLACE_ASIDE);
}

/* The next one after the present gang that has something to run. */
static void tick(sterna_view* view, sterna_entity* expired, void* data) {
  (void)expired, (void)data;
  sterna_entity *now = sterna_view_first(view), *next;
  while (now && sterna_entity_place(now) == STERNA_PLACE_ASIDE) {
    now = sterna_view_next(view, now);
  }
  next = now ? sterna_view_next(view, now) : sterna_view_first(view);
  for (int turn = 0; turn < 2; ++turn, next = sterna_view_first(view)) {
    for (; next; next = sterna_view_next(view, next)) {
      if (next != now && sterna_entity_ready(view, next)) {
        if (now) {
          sterna_entity_put(view, now, STERNA_PLACE_ASIDE);
        }
        sterna_entity_put(view, next, sterna_view_domain(view));
        return;
      }
    }
  }
}

static int idle(sterna_view* view, sterna_place processor, void* data) {
  sterna_entity* entity = sterna_view_first(view);
  (void)processor;
  for (; entity; entity = sterna_view_next(view, entity)) {
    if (sterna_entity_place(entity) != STERNA_PLACE_ASIDE &&
        sterna_entity_ready(view, entity) + sterna_entity_running(view, entity) != 0) {
      return 0; /* The present gang runs: others wait for their turn. */
    }
  }
  tick(view, NULL, data);
  return 1;
}

static atomic_int count;

static void work(void* argument) {
  (void)argument;
  for (int i = 0; i < 1000; ++i) {
    sterna_thread_yield();
  }
  atomic_fetch_add(&count, 1);
}

int main(void) {
  const sterna_policy gang = {.size_bytes = sizeof gang,
                              .name = "my-gang",
                              .summary = "one bubble at a time",
                              .tick_ns = 200000,
                              .submit = submit,
                              .idle = idle,
                              .tick = tick};
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.policy = "my-gang";
  if (sterna_policy_register(&gang) != STERNA_SUCCESS || sterna_start(&options) != STERNA_SUCCESS) {
    return 1;
  }
  sterna_bubble* gangs[3];
  for (int i = 0; i < 3; ++i) {
    sterna_bubble_create(&gangs[i]);
    for (int k = 0; k < 5 + i; ++k) {
      sterna_bubble_add_thread(gangs[i], NULL, work, NULL);
    }
    sterna_bubble_submit(gangs[i]);
  }
  for (int i = 0; i < 3; ++i) {
    sterna_bubble_join(gangs[i]);
  }
  printf("%d threads have run\n", atomic_load(&count));
  sterna_stop();
  return atomic_load(&count) == 18 ? 0 : 1;
}
