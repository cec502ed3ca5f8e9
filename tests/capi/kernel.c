/* Threads and the kernel: preemption, calls that block, stacks of the program's own, bubbles from
 * the options of a thread, and kernel threads that are no workers but call everything. Runs alone,
 * and with the settings of preemption. Prints "No Errors". */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/bubble.h>
#include <sterna/control.h>
#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>
#include <string.h>
#include <unistd.h>

#include "computes.h"
#include "expect.h"

static int ends[2];

static void reader(void* argument) {
  char byte = 0;
  errno = 4711;
  EXPECT(sterna_blocking_begin() == STERNA_SUCCESS);
  EXPECT(read(ends[0], &byte, 1) == 1 && byte == 'x');
  EXPECT(errno == 4711);
  sterna_blocking_end();
  sterna_blocking_end(); /* Nothing is left to do. */
  *(int*)argument = 1;
}

static void writer(void* argument) {
  (void)argument;
  EXPECT(write(ends[1], "x", 1) == 1);
}

/* Both have the same worker: without the region the reader would keep it. */
static void test_blocking(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0;
  options.is_bound = 1;
  EXPECT(pipe(ends) == 0);
  for (int i = 0; i < 20; ++i) {
    sterna_thread* threads[2];
    int has_read = 0;
    EXPECT(sterna_thread_create(&options, reader, &has_read, &threads[0]) == STERNA_SUCCESS);
    EXPECT(sterna_thread_create(&options, writer, NULL, &threads[1]) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(threads[0]) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(threads[1]) == STERNA_SUCCESS);
    EXPECT(has_read == 1);
  }
  EXPECT(sterna_blocking_begin() == STERNA_SUCCESS); /* A kernel thread. */
  sterna_blocking_end();
  close(ends[0]);
  close(ends[1]);
}

static void disables(void* argument) {
  (void)argument;
  EXPECT(sterna_preemption_enable() == STERNA_REFUSED);
  sterna_preemption_disable();
  sterna_preemption_disable();
  EXPECT(sterna_preemption_enable() == STERNA_SUCCESS);
  EXPECT(sterna_preemption_enable() == STERNA_SUCCESS);
  EXPECT(sterna_preemption_enable() == STERNA_REFUSED);
}

static void run(const sterna_thread_options* options, sterna_thread_function function,
                void* argument) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(options, function, argument, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

static void test_preemption(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  run(NULL, disables, NULL);
  options.preemption = STERNA_PREEMPTION_NONE;
  run(&options, disables, NULL);
  options.preemption = 4;
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(&options, disables, NULL, &thread) == STERNA_INVALID_ARGUMENT);
}

/* Of one thread alone, whatever the others have. */
static void test_own_slices(void) {
  sterna_thread* thread = NULL;
  uint32_t mode = 7;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0;
  options.is_bound = 1;
  options.preemption = STERNA_PREEMPTION_SLICE;
  const sterna_status status = sterna_thread_create(&options, computes, NULL, &thread);
  if (status == STERNA_UNSUPPORTED) {
    char detail[200];
    EXPECT(sterna_error_detail(detail, sizeof detail) == STERNA_SUCCESS);
    EXPECT(strstr(detail, "take_over") != NULL);
    return;
  }
  EXPECT(status == STERNA_SUCCESS);
  EXPECT(sterna_thread_preemption(thread, &mode) == STERNA_SUCCESS);
  EXPECT(mode == STERNA_PREEMPTION_SLICE);
  options.preemption = STERNA_PREEMPTION_COMMUNICATION;
  run(&options, ends_it, NULL); /* Because the first one gives way. */
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  run(&options, disables, NULL);
  options.preemption = STERNA_PREEMPTION_SLICE;
  run(&options, disables, NULL);
}

static void note_place(void* place) {
  int local = 0;
  __atomic_store_n((uintptr_t*)place, (uintptr_t)&local, __ATOMIC_RELAXED);
}

static void wait_here(void* semaphore) {
  EXPECT(sterna_semaphore_acquire(semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
}

static int is_listed(const sterna_thread* thread) {
  sterna_thread_info infos[64];
  size_t count = 0;
  int found = 0;
  EXPECT(sterna_thread_list(infos, 64, &count) == STERNA_SUCCESS && count <= 64);
  for (size_t i = 0; i < count; ++i) {
    found += infos[i].thread == thread;
  }
  return found;
}

static void test_stacks(void) {
  void* stack = NULL;
  size_t bytes = 0;
  EXPECT(sterna_stack_create(100000, &stack, &bytes) == STERNA_SUCCESS && bytes >= 100000);
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.stack = stack;
  for (int i = 0; i < 3; ++i) {
    uintptr_t place = 0;
    run(&options, note_place, &place);
    EXPECT(place - (uintptr_t)stack < bytes);
  }
  sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  EXPECT(sterna_thread_create(&options, wait_here, &semaphore, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(&options, wait_here, &semaphore, &other) == STERNA_BUSY);
  EXPECT(sterna_stack_destroy(stack) == STERNA_BUSY);
  EXPECT(is_listed(thread)); /* As any other thread, though four have had this stack. */
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(!is_listed(thread));
  EXPECT(sterna_stack_destroy(stack) == STERNA_SUCCESS);
  EXPECT(!is_listed(thread));
  options.stack = &semaphore;
  EXPECT(sterna_thread_create(&options, wait_here, &semaphore, &other) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_stack_destroy(&semaphore) == STERNA_INVALID_ARGUMENT);
}

static void count(void* counter) {
  __atomic_fetch_add((int*)counter, 1, __ATOMIC_RELAXED);
}

enum { kReuses = 50 };

static void* joins_all(void* handed) {
  for (int i = 0; i < kReuses; ++i) {
    sterna_thread* thread = NULL;
    while ((thread = __atomic_exchange_n((sterna_thread**)handed, NULL, __ATOMIC_ACQ_REL)) ==
           NULL) {
      sched_yield();
    }
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  return NULL;
}

/* One thread joins what another one has on its stack, and the next one begins there as soon as
 * that has left it: nothing of the join comes after that (a sanitizer would see it). */
static void test_reuse_of_a_stack(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_thread* handed = NULL; /* Atomic. */
  int counter = 0;
  pthread_t joiner;
  EXPECT(sterna_stack_create(100000, &options.stack, NULL) == STERNA_SUCCESS);
  EXPECT(pthread_create(&joiner, NULL, joins_all, &handed) == 0);
  for (int i = 0; i < kReuses; ++i) {
    sterna_thread* thread = NULL;
    sterna_status status = STERNA_BUSY;
    while ((status = sterna_thread_create(&options, count, &counter, &thread)) == STERNA_BUSY) {
      sched_yield();
    }
    EXPECT(status == STERNA_SUCCESS);
    __atomic_store_n(&handed, thread, __ATOMIC_RELEASE);
  }
  EXPECT(pthread_join(joiner, NULL) == 0);
  EXPECT(counter == kReuses);
  EXPECT(sterna_stack_destroy(options.stack) == STERNA_SUCCESS);
}

static void test_bubbles(void) {
  sterna_bubble* bubble = NULL;
  int counter = 0;
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options.bubble = bubble;
  EXPECT(sterna_thread_create(&options, count, &counter, &thread) == STERNA_SUCCESS);
  for (int i = 0; i < 5; ++i) {
    EXPECT(sterna_thread_create(&options, count, &counter, NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(&options, count, &counter, NULL) == STERNA_SUCCESS); /* At once. */
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(counter == 7);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

/* What kernel threads and user threads share. */
static sterna_mutex mutex = STERNA_MUTEX_INIT;
static sterna_condition condition = STERNA_CONDITION_INIT;
static sterna_semaphore units = STERNA_SEMAPHORE_INIT;
static int sum;
static int turn;

enum { kRounds = 200, kForeign = 3 };

static void add(void* argument) {
  (void)argument;
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  ++sum;
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&units, 1) == STERNA_SUCCESS);
}

static void take_turns(void* me) {
  const int mine = *(int*)me;
  for (int i = 0; i < kRounds; ++i) {
    EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    while (turn % 2 != mine) {
      EXPECT(sterna_condition_wait(&condition, &mutex, STERNA_FOREVER) == STERNA_SUCCESS);
    }
    ++turn;
    EXPECT(sterna_condition_broadcast(&condition) == STERNA_SUCCESS);
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  }
}

static void* foreign_main(void* argument) {
  for (int i = 0; i < kRounds; ++i) {
    sterna_thread* thread = NULL;
    EXPECT(sterna_thread_create(NULL, add, NULL, &thread) == STERNA_SUCCESS);
    add(NULL);
    EXPECT(sterna_semaphore_acquire(&units, STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(sterna_semaphore_acquire(&units, STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  EXPECT(sterna_thread_self() == NULL);
  sterna_thread_yield();
  return argument;
}

static void* foreign_turns(void* me) {
  take_turns(me);
  return NULL;
}

static void test_foreign(void) {
  pthread_t foreign[kForeign];
  for (int i = 0; i < kForeign; ++i) {
    EXPECT(pthread_create(&foreign[i], NULL, foreign_main, NULL) == 0);
  }
  for (int i = 0; i < kForeign; ++i) {
    EXPECT(pthread_join(foreign[i], NULL) == 0);
  }
  EXPECT(sum == 2 * kForeign * kRounds);
  int zero = 0;
  int one = 1;
  sterna_thread* thread = NULL;
  EXPECT(pthread_create(&foreign[0], NULL, foreign_turns, &zero) == 0);
  EXPECT(sterna_thread_create(NULL, take_turns, &one, &thread) == STERNA_SUCCESS);
  EXPECT(pthread_join(foreign[0], NULL) == 0);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(turn == 2 * kRounds);
}

/* With preemption: each computes until the next one has begun, on one worker. */
static int begun;

static void chain(void* number) {
  const int mine = *(int*)number;
  __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
  void* volatile block = NULL;
  while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < mine + 2) {
    free(block);
    block = malloc(100);
  }
  free(block);
}

static void test_slices(void) {
  enum { kThreads = 4 };
  sterna_thread* threads[kThreads];
  int numbers[kThreads] = {0, 1, 2, 2};
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0;
  options.is_bound = 1;
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_create(&options, chain, &numbers[i], &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
}

int main(int argc, char** argv) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_blocking();
  test_preemption();
  test_own_slices();
  test_stacks();
  test_reuse_of_a_stack();
  test_bubbles();
  test_foreign();
  if (argc > 1 && strcmp(argv[1], "slices") == 0) {
    test_slices();
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
