/* A bubble that lives for long keeps nothing of threads that have ended and are not joined by it:
 * those whose handle somebody has, detached ones, and some that have come from elsewhere. One that
 * nobody joins is joined by sterna_stop. */
#include <malloc.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/held.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kBirths = 10000 }; /* Some tens of detached ones may not have ended yet as it is measured. */

static size_t grown_by; /* Bytes of the heap. */

static void nothing(void* argument) { (void)argument; }

static void go_into(void* bubble) {
  const sterna_held self = sterna_held_thread(sterna_thread_self());
  EXPECT(sterna_held_move(self, bubble, STERNA_MOVE_NOW) == STERNA_SUCCESS);
}

static sterna_thread_options options_in(sterna_bubble* bubble) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.bubble = bubble;
  return options;
}

static sterna_bubble* make_bubble(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  return bubble;
}

static void join_one(const sterna_thread_options* options, sterna_thread_function function,
                     void* argument) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(options, function, argument, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

static void give_births(sterna_bubble* bubble, int count) {
  sterna_thread_options options = options_in(bubble);
  sterna_bubble* other = make_bubble();
  const sterna_thread_options elsewhere = options_in(other);
  EXPECT(sterna_bubble_submit(other) == STERNA_SUCCESS);
  for (int i = 0; i < count; ++i) {
    options.is_detached = 0;
    join_one(&options, nothing, NULL);
    join_one(&elsewhere, go_into, bubble);
    options.is_detached = 1;
    EXPECT(sterna_thread_create(&options, nothing, NULL, NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_join(other) == STERNA_SUCCESS);
}

static void measure(void* bubble) {
  give_births(bubble, kBirths); /* What is kept for the next ones is there. */
  const size_t before = mallinfo2().uordblks;
  give_births(bubble, kBirths);
  const size_t after = mallinfo2().uordblks;
  grown_by = after > before ? after - before : 0;
}

/* Nobody joins it, nor its thread. */
static void leave_one_behind(void) {
  sterna_bubble* bubble = make_bubble();
  sterna_bubble* inner = make_bubble();
  const sterna_thread_options options = options_in(inner);
  sterna_thread* thread = NULL;
  EXPECT(sterna_bubble_add_thread(bubble, NULL, nothing, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(&options, nothing, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(bubble, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  sterna_bubble* bubble = make_bubble();
  EXPECT(sterna_bubble_add_thread(bubble, NULL, measure, bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(grown_by < kBirths * sizeof(void*)); /* What describes one is some hundred bytes. */
  leave_one_behind();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
