/* A gang scheduler written by its user (BubbleSched, figure 6): one bubble at a time has the
 * machine, for a time slice. Then three gangs share it. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sterna/bubble.h>
#include <sterna/policy.h>
#include <sterna/sterna.h>
#include <time.h>

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  sterna_entity_put(view, entity, STERNA_PLACE_ASIDE);
}

static void tick(sterna_view* view, sterna_entity* expired, void* data) {
  sterna_entity* now = sterna_view_at(view, sterna_view_domain(view));
  sterna_entity* next = sterna_view_next_ready(view, now);
  (void)expired, (void)data;
  if (next) { /* Else nothing waits in any gang. */
    sterna_entity_put(view, now, STERNA_PLACE_ASIDE);
    sterna_entity_put(view, next, sterna_view_domain(view));
  }
}

static int idle(sterna_view* view, sterna_place processor, void* data) {
  sterna_entity* now = sterna_view_at(view, sterna_view_domain(view));
  (void)processor;
  if (now && sterna_entity_ready(view, now) + sterna_entity_running(view, now) != 0) {
    return 0; /* The present gang runs: others wait for their turn. */
  }
  tick(view, NULL, data);
  return sterna_view_at(view, sterna_view_domain(view)) != now;
}

enum { kGangs = 3, kTurns = 4, kSecondsMax = 20 };

static atomic_int last = -1; /* The gang that ran last. */
static atomic_int turns[kGangs];
static atomic_long rounds;

static int all_had_their_turns(void) {
  int least = turns[0];
  for (int i = 1; i < kGangs; ++i) {
    least = turns[i] < least ? turns[i] : least;
  }
  return least >= kTurns;
}

static void work(void* gang) {
  const int me = (int)(intptr_t)gang;
  const time_t end = time(NULL) + kSecondsMax;
  while (!all_had_their_turns() && time(NULL) < end) {
    if (atomic_exchange(&last, me) != me) {
      atomic_fetch_add(&turns[me], 1);
    }
    atomic_fetch_add(&rounds, 1);
    sterna_thread_yield();
  }
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
  sterna_bubble* gangs[kGangs];
  int sum = 0;
  for (int i = 0; i < kGangs; ++i) {
    sterna_bubble_create(&gangs[i]);
    for (int k = 0; k < 5 + i; ++k) {
      sterna_bubble_add_thread(gangs[i], NULL, work, (void*)(intptr_t)i);
    }
    sterna_bubble_submit(gangs[i]);
  }
  for (int i = 0; i < kGangs; ++i) {
    sterna_bubble_join(gangs[i]);
    printf("gang %d had %d turns\n", i, turns[i]);
    sum += turns[i];
  }
  sterna_stop();
  /* In a turn a gang has the machine for a while: otherwise they all run at once. */
  return all_had_their_turns() && rounds >= 10 * (long)sum ? 0 : 1;
}
