/* A bubble that lives for long keeps nothing of threads that have ended and are not joined by it:
 * those whose handle somebody has, and detached ones. */
#include <malloc.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kBirths = 2000 };

static size_t grown_by; /* Bytes of the heap. */

static void nothing(void* argument) { (void)argument; }

static void give_births(void* bubble) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.bubble = bubble;
  size_t before = 0;
  for (int i = 0; i < 2 * kBirths; ++i) {
    if (i == kBirths) before = mallinfo2().uordblks; /* What is kept for the next ones is there. */
    sterna_thread* thread = NULL;
    options.is_detached = i % 2;
    EXPECT(sterna_thread_create(&options, nothing, NULL, i % 2 ? NULL : &thread) == STERNA_SUCCESS);
    if (i % 2 == 0) EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  const size_t after = mallinfo2().uordblks;
  grown_by = after > before ? after - before : 0;
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, give_births, bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(grown_by < kBirths * sizeof(void*)); /* What describes one is some hundred bytes. */
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
