/* What is refused to threads and bubbles that would change their bubble, and changes nothing. */
#include "held.h"

/* What is refused changes nothing: who held it before runs it. */
static void test_refused_building(void) {
  enum { kDeep = 60 };
  sterna_bubble *outer = NULL, *middle = NULL, *inner = NULL, *deep[kDeep];
  sterna_thread* thread = NULL;
  count = 0;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&middle) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, middle) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(middle, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(middle, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_bubble(middle);
  EXPECT(sterna_held_move(held, inner, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("one that it holds") && holder_of(held) == outer);
  EXPECT(sterna_held_move(held, middle, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(holder_of(held) == outer);
  for (int i = 0; i < kDeep; ++i) {
    EXPECT(sterna_bubble_create(&deep[i]) == STERNA_SUCCESS);
    EXPECT(i == 0 || sterna_bubble_add_bubble(deep[i - 1], deep[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("60 deep") && holder_of(held) == outer);
  EXPECT(sterna_bubble_submit(deep[0]) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(holder_of(held) == outer);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  /* The same rule for what runs. */
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("60 deep") && holder_of(held) == outer);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(count == 1);
  EXPECT(sterna_bubble_join(deep[0]) == STERNA_SUCCESS);
}

static void do_nothing(void* argument) {
  (void)argument;
}

/* A pop without a push: the bubble's own cleanup stays, or nobody could join it. */
static void pop_too_often(void* argument) {
  sterna_cleanup cleanup;
  EXPECT(sterna_thread_cleanup_pop(0) == STERNA_NOT_FOUND && has_detail("come in pairs"));
  EXPECT(sterna_thread_cleanup_push(&cleanup, do_nothing, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cleanup_pop(1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cleanup_pop(1) == STERNA_NOT_FOUND);
  (void)argument;
}

static void test_cleanups(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_bubble_add_thread(bubble, NULL, pop_too_often, NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

static void test_refusals(void) {
  sterna_thread* plain = NULL;
  sterna_bubble* bubble = NULL;
  sterna_bubble* holder = NULL;
  sterna_held both = {NULL, NULL};
  sterna_thread* thread = NULL;
  sterna_bubble* running = start_waiter(&thread, NULL);
  const sterna_held held = sterna_held_thread(thread);
  char few[3];
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(both, bubble, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_move(held, bubble, STERNA_MOVE_NOW) == STERNA_BUSY);
  EXPECT(has_detail("goes into a bubble that runs"));
  EXPECT(sterna_held_move(held, running, (sterna_move)7) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_holder(held, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_join(thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("sterna_bubble_join waits for it"));
  EXPECT(sterna_thread_detach(thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_set_place(held, "moon:0") == STERNA_NOT_FOUND);
  EXPECT(has_detail("no place \"moon:0\""));
  EXPECT(sterna_held_begin_at(held, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_begin_beside(held, sterna_held_bubble(bubble)) == STERNA_BUSY);
  EXPECT(sterna_held_place(held, few, sizeof few) == STERNA_TRUNCATED);
  EXPECT(sterna_bubble_set_name(running, "late") == STERNA_BUSY);
  EXPECT(sterna_held_level(held, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_create(NULL, do_nothing, NULL, &plain) == STERNA_SUCCESS);
  EXPECT(sterna_held_holder(sterna_held_thread(plain), &holder) == STERNA_UNSUPPORTED);
  EXPECT(has_detail("outside of bubbles"));
  EXPECT(sterna_thread_join(plain) == STERNA_SUCCESS);
  EXPECT(sterna_held_holder(sterna_held_thread(plain), &holder) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(running) == STERNA_SUCCESS);
}

int main(void) {
  sterna_bubble* holder = NULL;
  sterna_held none = {NULL, NULL};
  EXPECT(sterna_held_holder(none, &holder) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_refused_building();
  test_refusals();
  test_cleanups();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
