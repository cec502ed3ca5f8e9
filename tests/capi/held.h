/* What the programs share that move threads and bubbles: threads that wait, and where they are. */
#ifndef STERNA_TESTS_CAPI_HELD_H
#define STERNA_TESTS_CAPI_HELD_H

#include <string.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"

static sterna_semaphore go = STERNA_SEMAPHORE_INIT;
static sterna_semaphore here = STERNA_SEMAPHORE_INIT;
static int count; /* Atomic: of threads that have had their go. */

static inline int has_detail(const char* wanted) {
  char text[240];
  (void)sterna_error_detail(text, sizeof text);
  if (strstr(text, wanted) == NULL) {
    fprintf(stderr, "the text is: %s\n", text);
    return 0;
  }
  return 1;
}

static inline sterna_bubble* holder_of(sterna_held held) {
  sterna_bubble* holder = NULL;
  EXPECT(sterna_held_holder(held, &holder) == STERNA_SUCCESS);
  return holder;
}

static inline int is_at(sterna_held held, const char* place) {
  char text[32];
  EXPECT(sterna_held_place(held, text, sizeof text) == STERNA_SUCCESS);
  return strcmp(text, place) == 0;
}

static inline void wait_for_go(void* argument) {
  *(sterna_thread**)argument = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
}

/* A running bubble with one thread that waits for `go`, at `place`. */
static inline sterna_bubble* start_waiter(sterna_thread** thread, const char* place) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  if (place != NULL) {
    EXPECT(sterna_held_set_place(sterna_held_bubble(bubble), place) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  return bubble;
}

#endif
