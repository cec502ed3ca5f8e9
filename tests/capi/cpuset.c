/* A program that may use one processor has one worker, on that one. */
#define _GNU_SOURCE
#include <sched.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static int processor;

static void look(void* argument) {
  (void)argument;
  EXPECT(sched_getcpu() == processor);
}

int main(void) {
  cpu_set_t allowed;
  EXPECT(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (processor = CPU_SETSIZE - 1; !CPU_ISSET(processor, &allowed);) {
    --processor;
  }
  CPU_ZERO(&allowed);
  CPU_SET(processor, &allowed);
  EXPECT(sched_setaffinity(0, sizeof allowed, &allowed) == 0); /* As taskset -c and cpusets do. */
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_worker_count() == 1);
  sterna_thread* threads[4];
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_create(NULL, look, NULL, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
