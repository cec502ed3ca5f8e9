/* Sets of workers of threads in bubbles: where they run, and what a bubble around them says. */
#include "held.h"

static uint32_t own_worker(void) {
  static sterna_thread_info infos[64];
  size_t present = 0;
  EXPECT(sterna_thread_list(infos, 64, &present) == STERNA_SUCCESS && present <= 64);
  for (size_t i = 0; i < present; ++i) {
    if (infos[i].thread == sterna_thread_self()) {
      return infos[i].worker;
    }
  }
  EXPECT(!"the thread is in the list");
  return 0;
}

static int rounds;

static void wanders(void* unused) {
  sterna_thread* const me = sterna_thread_self();
  uint64_t set = 0;
  uint64_t words[16];
  (void)unused;
  EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_INVALID_ARGUMENT && has_detail("empty"));
  for (int i = 0; i < 50; ++i) {
    set = 1u << (i & 1);
    EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_SUCCESS);
    EXPECT(own_worker() == (uint32_t)(i & 1));
    EXPECT(sterna_thread_workers(me, words, 16) == STERNA_SUCCESS && words[0] == set);
    sterna_thread_yield();
    EXPECT(own_worker() == (uint32_t)(i & 1));
    ++rounds;
  }
  EXPECT(sterna_thread_set_workers(me, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_thread_workers(me, words, 16) == STERNA_SUCCESS && (words[0] & 3) == 3);
  EXPECT(sterna_worker_disable(1) == STERNA_SUCCESS);
  set = 2;
  EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_REFUSED && has_detail("disabled"));
  EXPECT(sterna_worker_enable(1) == STERNA_SUCCESS);
}

/* The largest place in the set; and by others, while the thread waits. */
static void test_sets(void) {
  sterna_bubble* bubble = NULL;
  sterna_thread* thread = NULL;
  uint64_t set = 2;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wanders, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(rounds == 50);
  bubble = start_waiter(&thread, NULL);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(sterna_thread_set_workers(thread, &set, 1) == STERNA_SUCCESS);
  EXPECT(!is_at(held, "machine:0"));
  EXPECT(sterna_thread_set_workers(thread, NULL, 0) == STERNA_SUCCESS);
  EXPECT(is_at(held, "machine:0"));
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

/* Its bubble stays at the first processor. */
static void test_bound(void) {
  sterna_thread* thread = NULL;
  char words[64];
  uint64_t set = 2;
  sterna_bubble* const bubble = start_waiter(&thread, NULL);
  EXPECT(sterna_held_set_place(sterna_held_bubble(bubble), "pu:0") == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_workers(thread, &set, 1) == STERNA_REFUSED);
  snprintf(words, sizeof words, "bubble %p, which holds it, stays at pu:0", (void*)bubble);
  EXPECT(has_detail("thread ") && has_detail(words) && has_detail("its first is 1"));
  EXPECT(is_at(sterna_held_thread(thread), "pu:0"));
  set = 3; /* What it has in common with its bubble. */
  EXPECT(sterna_thread_set_workers(thread, &set, 1) == STERNA_SUCCESS);
  EXPECT(is_at(sterna_held_thread(thread), "pu:0"));
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  /* With more nodes, or less processors, workers share them, and a set of one is no place. */
  if (sterna_node_count() == 1 && sterna_worker_count() >= 2) {
    test_sets();
    test_bound();
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
