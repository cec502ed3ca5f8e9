/* Threads and bubbles that change their bubble, and where they begin and stay, while they run. */
#include "held.h"

static void test_thread(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* from = start_waiter(&thread, "pu:0");
  sterna_bubble* to = start_waiter(&other, "pu:1");
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(holder_of(held) == from && is_at(held, "pu:0"));
  /* Now: it goes where its bubble is. */
  EXPECT(sterna_held_move(held, to, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == to && is_at(held, "pu:1"));
  /* The one that it has left ends without it. */
  EXPECT(sterna_bubble_join(from) == STERNA_SUCCESS);
  EXPECT(count == 0);
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(to) == STERNA_SUCCESS);
  EXPECT(count == 2);
}

static void test_stay(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* from = NULL;
  sterna_bubble* to = start_waiter(&other, NULL);
  count = 0;
  EXPECT(sterna_bubble_create(&from) == STERNA_SUCCESS);
  EXPECT(sterna_held_begin_at(sterna_held_bubble(from), "pu:1") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(from, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(from) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(is_at(held, "pu:1"));
  EXPECT(sterna_held_move(held, to, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == to && is_at(held, "pu:1") &&
         is_at(sterna_held_bubble(to), "machine:0"));
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS); /* Now the policy knows its new bubble. */
  EXPECT(is_at(held, "machine:0"));
  /* Beside another one, which may be a bubble. */
  EXPECT(sterna_held_begin_at(sterna_held_bubble(to), "pu:0") == STERNA_SUCCESS);
  EXPECT(sterna_held_begin_beside(held, sterna_held_bubble(to)) == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:0"));
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(from) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(to) == STERNA_SUCCESS);
  EXPECT(count == 2);
}

static void test_bubble(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* inner = start_waiter(&thread, NULL);
  sterna_bubble* outer = start_waiter(&other, "pu:1");
  const sterna_held held = sterna_held_bubble(inner);
  count = 0;
  EXPECT(sterna_held_move(held, outer, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == outer && is_at(held, "pu:1"));
  EXPECT(is_at(sterna_held_thread(thread), "pu:1"));
  EXPECT(sterna_bubble_join(inner) == STERNA_INVALID_ARGUMENT); /* It is joined with the other. */
  EXPECT(sterna_held_move(sterna_held_bubble(outer), inner, STERNA_MOVE_NOW) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("one that it holds"));
  EXPECT(sterna_held_move(held, NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == NULL && is_at(held, "machine:0"));
  EXPECT(sterna_held_move(held, outer, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS); /* With the inner one. */
  EXPECT(count == 2);
}

/* Before they run. */
static void test_building(void) {
  sterna_bubble *inner = NULL, *first = NULL, *second = NULL;
  int is_settled = -1;
  count = 0;
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&first) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&second) == STERNA_SUCCESS);
  sterna_thread* thread = NULL;
  EXPECT(sterna_bubble_add_thread(inner, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_bubble(inner);
  EXPECT(sterna_held_move(held, first, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, second, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == second);
  EXPECT(sterna_bubble_destroy(first) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == NULL);
  EXPECT(sterna_bubble_submit(second) == STERNA_SUCCESS);
  /* What does not run starts in one that does. */
  EXPECT(sterna_held_move(held, second, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_held_is_settled(held, &is_settled) == STERNA_SUCCESS && is_settled == 0);
  EXPECT(sterna_held_set_settled(held, 1) == STERNA_SUCCESS);
  EXPECT(sterna_held_is_settled(held, &is_settled) == STERNA_SUCCESS && is_settled == 1);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(second) == STERNA_SUCCESS);
  EXPECT(count == 1);
}

static sterna_thread* waiting;

static void wait_at_barrier(void* argument) {
  waiting = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_barrier(argument, NULL) == STERNA_SUCCESS);
}

static void leave_all(void* argument) {
  (void)argument;
  EXPECT(sterna_held_move(sterna_held_thread(sterna_thread_self()), NULL, STERNA_MOVE_NOW) ==
         STERNA_SUCCESS);
  EXPECT(holder_of(sterna_held_thread(sterna_thread_self())) == NULL);
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
}

/* Who leaves counts no more, at the barrier and for the join; who waits there cannot be moved. */
static void test_leaving(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  sterna_thread* blocker = NULL;
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_at_barrier, bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, &blocker) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  sterna_status status = STERNA_SUCCESS;
  for (;;) { /* Until it is there; before, it goes nowhere: its bubble is its bubble. */
    status = sterna_held_move(sterna_held_thread(waiting), bubble, STERNA_MOVE_STAY);
    if (status == STERNA_BUSY) {
      break;
    }
    EXPECT(status == STERNA_SUCCESS);
    sterna_thread_yield();
  }
  EXPECT(has_detail("waits at the barrier"));
  /* The other one leaves: the first need not wait any more. */
  EXPECT(sterna_held_move(sterna_held_thread(blocker), NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  for (int round = 0; round < 20; ++round) { /* Their memory is used again in between. */
    EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_thread(bubble, NULL, leave_all, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS); /* Which does not wait for it. */
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
}

/* A thread with a place of its own within its bubble. */
static void test_places(void) {
  sterna_thread* thread = NULL;
  sterna_bubble* bubble = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options.place = "moon:1";
  EXPECT(sterna_bubble_add_thread(bubble, &options, wait_for_go, &thread) == STERNA_NOT_FOUND);
  options.place = "pu:1";
  EXPECT(sterna_bubble_add_thread(bubble, &options, wait_for_go, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(is_at(held, "pu:1"));
  EXPECT(sterna_held_begin_at(held, "pu:0") == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:1")); /* What it must not leave bounds where it begins. */
  EXPECT(sterna_held_set_place(held, NULL) == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:0"));
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  /* With more nodes the processors of the places may be those of another. */
  if (sterna_node_count() == 1 && sterna_worker_count() >= 2) {
    test_thread();
    test_stay();
    test_bubble();
    test_places();
  } else {
    puts("skipped: moves between places: they need one node with two processors");
  }
  test_building();
  test_leaving();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
