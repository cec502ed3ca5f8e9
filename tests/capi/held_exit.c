/* A program that ends without sterna_stop while a thread of no bubble runs on: static objects of
 * the runtime that it uses must not go before. */
#include "held.h"


static sterna_thread* waiting_for_go; /* Keeps the bubble from ending. */
static int step;                      /* Atomic. */

static void reach(int wanted) {
  while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < wanted) {
  }
}

static void run_on(void* argument) {
  const sterna_held me = sterna_held_thread(sterna_thread_self());
  EXPECT(sterna_held_move(me, NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  __atomic_store_n(&step, 1, __ATOMIC_RELEASE);
  reach(2); /* The program is in exit(). */
  EXPECT(holder_of(me) == NULL);
  EXPECT(sterna_held_move(me, argument, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(me, NULL, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  __atomic_store_n(&step, 3, __ATOMIC_RELEASE);
  for (;;) {
    sterna_thread_yield();
  }
}

/* Registered before anything else, so it runs after the destructors of what was made since. */
static void at_exit(void) {
  __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
  reach(3);
  puts("No Errors");
}

int main(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(atexit(at_exit) == 0);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, &waiting_for_go) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, run_on, bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  reach(1);
  exit(0);
}
