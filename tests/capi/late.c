/* Threads of bubbles that have ended, and bubbles that are joined, before the call that started
 * them is back: its caller is a kernel thread that runs only while no worker wants the one
 * processor that they share. What goes wrong is use of freed memory, which sanitizers see. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/held.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/tune.h"

enum { kRounds = 20 };

static sterna_semaphore ready = STERNA_SEMAPHORE_INIT;
static sterna_semaphore kick = STERNA_SEMAPHORE_INIT;

static void acquire(sterna_semaphore* semaphore) {
  EXPECT(sterna_semaphore_acquire(semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
}

static void release(sterna_semaphore* semaphore) {
  EXPECT(sterna_semaphore_release(semaphore, 1) == STERNA_SUCCESS);
}

static void move_to(sterna_bubble* holder) {
  const sterna_held self = sterna_held_thread(sterna_thread_self());
  EXPECT(sterna_held_move(self, holder, STERNA_MOVE_NOW) == STERNA_SUCCESS);
}

static sterna_bubble* bubble_of(sterna_thread_function function, void* argument) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, function, argument) == STERNA_SUCCESS);
  return bubble;
}

/* What runs already, and goes on when it is kicked. */
static sterna_bubble* start_helper(sterna_thread_function function, void* argument) {
  sterna_bubble* const bubble = bubble_of(function, argument);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  acquire(&ready);
  return bubble;
}

static void leave_when_kicked(void* unused) {
  (void)unused;
  release(&ready);
  acquire(&kick);
  move_to(NULL); /* And frees what has left before. */
}

static void leave_and_kick(void* unused) {
  (void)unused;
  move_to(NULL);
  release(&kick);
}

static void join_when_kicked(void* bubble) {
  release(&ready);
  acquire(&kick);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

static sterna_bubble* its;

static void leave_return_and_kick(void* unused) {
  (void)unused;
  move_to(NULL);
  move_to(its);
  release(&kick);
}

static void kick_only(void* unused) {
  (void)unused;
  release(&kick);
}

/* A thread out of all bubbles is freed by the next one that leaves. */
static void test_leaving(void) {
  sterna_bubble* const helper = start_helper(leave_when_kicked, NULL);
  sterna_bubble* const bubble = bubble_of(leave_and_kick, NULL);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(helper) == STERNA_SUCCESS);
}

/* One that was out of all, and is back, is freed by who joins. */
static void test_joining(sterna_thread_function function) {
  its = bubble_of(function, NULL);
  sterna_bubble* const helper = start_helper(join_when_kicked, its);
  EXPECT(sterna_bubble_submit(its) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(helper) == STERNA_SUCCESS);
}

/* The second thread cannot be started; the first one has the bubble joined meanwhile. */
static void test_failing(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  its = bubble_of(kick_only, NULL);
  options.stack_bytes = (size_t)1 << 31;
  EXPECT(sterna_bubble_add_thread(its, &options, kick_only, NULL) == STERNA_SUCCESS);
  sterna_bubble* const helper = start_helper(join_when_kicked, its);
  EXPECT(sterna_bubble_submit(its) != STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(helper) == STERNA_SUCCESS);
}

/* No room for a slot of 4 GiB. */
static void limit_addresses(void) {
  unsigned long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  EXPECT(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
  const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)1 << 30);
  const struct rlimit limit = {bytes, bytes};
  EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
}

int main(void) {
  const struct sched_param none = {0};
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  cpu_set_t all, one;
  int processor = 0;
  EXPECT(sched_getaffinity(0, sizeof all, &all) == 0);
  while (!CPU_ISSET(processor, &all)) {
    ++processor;
  }
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
  EXPECT(sterna_setting_set("spin", "0") == STERNA_SUCCESS);
  options.workers = 1;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  EXPECT(sched_setscheduler(0, SCHED_IDLE, &none) == 0);
  for (int i = 0; i < kRounds; ++i) {
    test_leaving();
    test_joining(leave_return_and_kick);
    test_joining(kick_only);
  }
  limit_addresses();
  test_failing();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
