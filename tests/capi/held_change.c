/* What may be said of bubbles and threads while they run: level, priority, slice, preemption; and
 * to which policy a bubble is submitted. */
#include "held.h"
#include "sterna/policy.h"

static int is_done; /* Atomic. */

static int on_processor(sterna_held held) {
  char text[32];
  EXPECT(sterna_held_place(held, text, sizeof text) == STERNA_SUCCESS);
  return strncmp(text, "pu:", 3) == 0;
}

static uint32_t level_of(sterna_held held) {
  uint32_t level = 77;
  EXPECT(sterna_held_level(held, &level) == STERNA_SUCCESS);
  return level;
}

/* Waits, in the queues that its policy chooses, until it is planned for one processor. */
static void come_down(void* argument) {
  const sterna_held me = sterna_held_thread(sterna_thread_self());
  *(sterna_thread**)argument = sterna_thread_self();
  EXPECT(!on_processor(me));
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  while (!on_processor(me)) {
    sterna_thread_sleep(100000);
  }
}

static void test_level(int has_places) {
  sterna_bubble* bubble = NULL;
  sterna_thread* thread = NULL;
  EXPECT(sterna_policy_set("burst") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(level_of(sterna_held_bubble(bubble)) == STERNA_NO_LEVEL);
  EXPECT(sterna_held_set_level(sterna_held_bubble(bubble), 0) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, has_places ? come_down : wait_for_go, &thread) ==
         STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(level_of(held) == STERNA_NO_LEVEL);
  EXPECT(sterna_bubble_set_level(bubble, 1) == STERNA_SUCCESS);
  EXPECT(level_of(sterna_held_bubble(bubble)) <= 1);
  EXPECT(sterna_bubble_set_level(bubble, 0) == STERNA_SUCCESS);
  EXPECT(level_of(sterna_held_bubble(bubble)) == 0);
  EXPECT(sterna_held_set_level(held, 1000) == STERNA_SUCCESS); /* The deepest, and it goes. */
  EXPECT(level_of(held) < 20);
  if (!has_places) {
    EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

/* The policy of its priority places it, at once. */
static void test_priority(int has_places) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_policy_set("priorities(realtime=spread,idle=flat)") == STERNA_SUCCESS);
  sterna_bubble* bubble = start_waiter(&thread, NULL);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(!has_places || is_at(held, "machine:0"));
  EXPECT(sterna_bubble_set_priority(bubble, STERNA_PRIORITY_REAL_TIME) == STERNA_SUCCESS);
  EXPECT(!has_places || on_processor(held));
  EXPECT(sterna_bubble_set_priority(bubble, STERNA_PRIORITY_BATCH) == STERNA_SUCCESS);
  EXPECT(!has_places || is_at(held, "machine:0"));
  EXPECT(sterna_bubble_set_priority(bubble, 99) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("priority 99"));
  EXPECT(sterna_bubble_set_slice(bubble, 1000000) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

static int may_be_preempted(void) {
  uint32_t mode = 7;
  EXPECT(sterna_thread_preemption(sterna_thread_self(), &mode) == STERNA_SUCCESS);
  return mode != STERNA_PREEMPTION_NONE;
}

static void see_both(void* unused) {
  (void)unused;
  EXPECT(may_be_preempted());
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  while (may_be_preempted()) {
    sterna_thread_sleep(100000);
  }
  __atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
  while (!may_be_preempted()) {
    sterna_thread_sleep(100000);
  }
}

/* Threads of bubbles inside hear of it, too. */
static void test_preemptible(void) {
  sterna_bubble *outer = NULL, *inner = NULL;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, NULL, see_both, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_preemptible(outer, 0) == STERNA_SUCCESS);
  while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE)) {
    sterna_thread_sleep(100000);
  }
  EXPECT(sterna_bubble_set_preemptible(outer, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
}

static void test_submit_to(int has_places) {
  sterna_thread* thread = NULL;
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_policy_set("choice(flat,spread)") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit_to(bubble, "gang") == STERNA_NOT_FOUND);
  EXPECT(has_detail("no policy \"gang\" is there to choose"));
  EXPECT(has_detail("choice(gang,...)"));
  EXPECT(sterna_bubble_submit_to(bubble, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_submit_to(NULL, "flat") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_submit_to(bubble, "spread") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit_to(bubble, "flat") == STERNA_BUSY);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(!has_places || on_processor(sterna_held_thread(thread)));
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  EXPECT(!has_places || on_processor(sterna_held_thread(thread)));
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  const int has_places = sterna_node_count() == 1 && sterna_worker_count() == 2;
  test_level(has_places);
  test_priority(has_places);
  test_preemptible();
  test_submit_to(has_places);
  if (!has_places) {
    puts("skipped: where they are: that needs one node with two processors");
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
