/* What bubbles say of the preemption of what they hold, also after moves. */
#include <string.h>
#include <time.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/sterna.h"

static int has_run; /* Atomic. */

static void note_run(void* argument) {
  (void)argument;
  __atomic_store_n(&has_run, 1, __ATOMIC_RELEASE);
}

static uint64_t now_ns(void) {
  struct timespec now;
  EXPECT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* While another thread waits for the same processor, and many slices pass. */
static void compute(void* is_preemptible) {
  const uint64_t end = now_ns() + 30000000u;
  while (is_preemptible != NULL ? !__atomic_load_n(&has_run, __ATOMIC_ACQUIRE) : now_ns() < end) {
  }
  EXPECT(__atomic_load_n(&has_run, __ATOMIC_ACQUIRE) == (is_preemptible != NULL));
}

static void test_preemptible(int is_preemptible) {
  sterna_bubble *outer = NULL, *inner = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.place = "pu:0";
  has_run = 0;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_preemptible(outer, is_preemptible) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, &options, compute, is_preemptible ? &has_run : NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, &options, note_run, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(has_run);
}

static sterna_bubble* calm; /* Unpreemptible, and runs. */

static int may_be_preempted(void) {
  uint32_t mode = 7;
  EXPECT(sterna_thread_preemption(sterna_thread_self(), &mode) == STERNA_SUCCESS);
  return mode != STERNA_PREEMPTION_NONE;
}

static sterna_bubble* holder_of_me(void) {
  sterna_bubble* holder = NULL;
  EXPECT(sterna_held_holder(sterna_held_thread(sterna_thread_self()), &holder) == STERNA_SUCCESS);
  return holder;
}

static void go_to(sterna_bubble* holder) {
  EXPECT(sterna_held_move(sterna_held_thread(sterna_thread_self()), holder, STERNA_MOVE_NOW) ==
         STERNA_SUCCESS);
  EXPECT(holder_of_me() == holder);
}

/* Born in the bubble of its creator's children, which is in calm. */
static void be_child(void* unused) {
  (void)unused;
  EXPECT(holder_of_me() == NULL);
  EXPECT(!may_be_preempted());
  go_to(NULL);
  EXPECT(may_be_preempted());
  go_to(calm);
  EXPECT(!may_be_preempted());
}

static void move_self(void* unused) {
  sterna_thread* child = NULL;
  (void)unused;
  EXPECT(may_be_preempted());
  go_to(calm);
  EXPECT(!may_be_preempted());
  EXPECT(sterna_thread_create(NULL, be_child, NULL, &child) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(child) == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_preemption(sterna_thread_self(), 0) == STERNA_SUCCESS);
  go_to(NULL);
  EXPECT(!may_be_preempted()); /* That was said of itself. */
  EXPECT(sterna_thread_set_preemption(sterna_thread_self(), 1) == STERNA_SUCCESS);
  EXPECT(may_be_preempted());
  __atomic_store_n(&has_run, 1, __ATOMIC_RELEASE);
}

static void be_moved(void* unused) {
  (void)unused;
  while (may_be_preempted()) {
    sterna_thread_sleep(100000);
  }
}

/* What bubbles say of preemption follows who holds the thread; what was said of itself stays. */
static void test_forbidding(void) {
  sterna_bubble *free_one = NULL, *moved = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.auto_bubbles = STERNA_AUTO_BUBBLES_FILIATION;
  has_run = 0;
  EXPECT(sterna_bubble_create(&calm) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&free_one) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&moved) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_preemptible(calm, 0) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(free_one, &options, move_self, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(moved, NULL, be_moved, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(calm) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(free_one) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(moved) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(sterna_held_bubble(moved), calm, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(free_one) == STERNA_SUCCESS);
  while (!__atomic_load_n(&has_run, __ATOMIC_ACQUIRE)) {
    sterna_thread_sleep(100000);
  }
  EXPECT(sterna_bubble_join(calm) == STERNA_SUCCESS);
}

int main(int argc, char** argv) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_forbidding();
  if (argc > 1 && strcmp(argv[1], "slices") == 0) {
    test_preemptible(0);
    test_preemptible(1);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
