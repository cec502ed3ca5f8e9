/* A thousand user threads share the workers of each node, and count themselves under a mutex. */
#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>
#include <stdio.h>

enum { kThreads = 1000 };

static sterna_mutex mutex = STERNA_MUTEX_INIT;
static int count; /* Guard: mutex. */

static void hello(void* argument) {
  (void)argument;
  sterna_thread_yield(); /* Others run now; this one may go on on another worker. */
  sterna_mutex_lock(&mutex);
  ++count;
  sterna_mutex_unlock(&mutex);
}

int main(void) {
  sterna_thread* threads[kThreads];
  sterna_status status = sterna_start(NULL);
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "sterna_start: %s\n", sterna_status_text(status));
    return 1;
  }
  for (int i = 0; i < kThreads; ++i) {
    status = sterna_thread_create(NULL, hello, NULL, &threads[i]);
    if (status != STERNA_SUCCESS) {
      fprintf(stderr, "thread %d: %s\n", i, sterna_status_text(status));
      return 1;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    sterna_thread_join(threads[i]);
  }
  printf("node %u of %u: %d threads were here\n", sterna_node_index(), sterna_node_count(), count);
  sterna_stop();
  return count == kThreads ? 0 : 1;
}
