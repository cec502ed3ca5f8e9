/* Calls at switches, counters of the processor, stopping the scheduling of the node, preemption of
 * other threads. Runs alone, and with the settings of preemption. Prints "No Errors". */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "computes.h"
#include "expect.h"
#include "sterna/control.h"
#include "sterna/counter.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static int has(const char* word) {
  char text[400];
  (void)sterna_error_detail(text, sizeof text);
  return strstr(text, word) != NULL;
}

static void run(sterna_thread_function function, void* argument) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(NULL, function, argument, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

/* Hooks. */

struct turns {
  int left;
  int came;
};

static void leaves(void* its) {
  ((struct turns*)its)->left++;
}
static void comes(void* its) {
  ((struct turns*)its)->came++;
}

static void with_hook(void* its) {
  sterna_switch_hook hook = {leaves, comes, its, NULL};
  sterna_switch_hook half = {NULL, comes, its, NULL};
  struct turns* const turns = its;
  EXPECT(sterna_thread_add_switch_hook(NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_remove_switch_hook(&hook) == STERNA_NOT_FOUND && has("does not have"));
  EXPECT(sterna_thread_add_switch_hook(&hook) == STERNA_SUCCESS);
  EXPECT(sterna_thread_add_switch_hook(&hook) == STERNA_BUSY);
  for (int i = 0; i < 10; ++i) {
    sterna_thread_sleep(100000);
  }
  EXPECT(turns->left >= 10 && turns->came == turns->left);
  EXPECT(sterna_thread_add_switch_hook(&half) == STERNA_SUCCESS);
  const int before = turns->came - turns->left;
  sterna_thread_sleep(100000);
  EXPECT(turns->came - turns->left > before);
  EXPECT(sterna_thread_remove_switch_hook(&hook) == STERNA_SUCCESS);
  EXPECT(sterna_thread_remove_switch_hook(&half) == STERNA_SUCCESS);
  const struct turns last = *turns;
  sterna_thread_sleep(100000);
  EXPECT(last.left == turns->left && last.came == turns->came);
}

static void test_hooks(void) {
  struct turns turns = {0, 0};
  sterna_switch_hook hook = {leaves, comes, &turns, NULL};
  EXPECT(sterna_thread_add_switch_hook(&hook) == STERNA_UNSUPPORTED && has("kernel threads"));
  EXPECT(sterna_thread_remove_switch_hook(&hook) == STERNA_UNSUPPORTED);
  run(with_hook, &turns);
}

/* Counters. */

enum { kPages = 100 };

static void touch(void) {
  char* const memory =
      mmap(NULL, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(memory != MAP_FAILED);
  for (int i = 0; i < kPages; ++i) {
    ((volatile char*)memory)[i * 4096] = 1;
    sterna_thread_yield();
  }
  EXPECT(munmap(memory, kPages * 4096) == 0);
}

static sterna_counters* shared;

static void counts(void* argument) {
  (void)argument;
  uint64_t before[2];
  uint64_t after[2];
  EXPECT(sterna_counters_stop(shared) == STERNA_REFUSED && has("do not count"));
  EXPECT(sterna_counters_start(shared) == STERNA_SUCCESS);
  EXPECT(sterna_counters_start(shared) == STERNA_BUSY && has("already"));
  EXPECT(sterna_counters_destroy(shared) == STERNA_BUSY);
  EXPECT(sterna_counters_read(shared, before) == STERNA_SUCCESS);
  touch();
  EXPECT(sterna_counters_read(shared, after) == STERNA_SUCCESS);
  EXPECT(after[0] - before[0] >= kPages && after[1] > before[1]);
  EXPECT(sterna_counters_stop(shared) == STERNA_SUCCESS);
  touch();
  EXPECT(sterna_counters_read(shared, before) == STERNA_SUCCESS);
  EXPECT(before[0] >= after[0] && before[0] < after[0] + kPages);
  EXPECT(sterna_counters_start(shared) == STERNA_SUCCESS);
  EXPECT(sterna_counters_reset(shared) == STERNA_SUCCESS);
  touch(); /* Its end stops the counting. */
}

static void touches(void* argument) {
  (void)argument;
  for (int i = 0; i < 5; ++i) {
    touch();
  }
}

/* Of a thread that touches kPages, alone or beside one that touches five times as many. */
static uint64_t faults_of_one(const sterna_event* events, int has_other) {
  uint64_t values[2];
  sterna_thread* other = NULL;
  EXPECT(sterna_counters_create(events, 2, &shared) == STERNA_SUCCESS);
  if (has_other) {
    EXPECT(sterna_thread_create(NULL, touches, NULL, &other) == STERNA_SUCCESS);
  }
  run(counts, NULL);
  EXPECT(!has_other || sterna_thread_join(other) == STERNA_SUCCESS);
  EXPECT(sterna_counters_read(shared, values) == STERNA_SUCCESS);
  EXPECT(sterna_counters_destroy(shared) == STERNA_SUCCESS);
  return values[0];
}

static void test_counters(void) {
  const sterna_event events[] = {STERNA_EVENT_PAGE_FAULTS, STERNA_EVENT_TASK_CLOCK};
  const sterna_event twice[] = {STERNA_EVENT_TASK_CLOCK, STERNA_EVENT_TASK_CLOCK};
  EXPECT(sterna_counters_create(events, 0, &shared) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_counters_create(twice, 2, &shared) == STERNA_INVALID_ARGUMENT && has("twice"));
  EXPECT(sterna_counters_destroy(NULL) == STERNA_SUCCESS);
  for (int event = 0; event < STERNA_EVENT_COUNT; ++event) {
    const sterna_event one = (sterna_event)event;
    sterna_counters* counters = NULL;
    const sterna_status status = sterna_counters_create(&one, 1, &counters);
    EXPECT(status == STERNA_SUCCESS ||
           (has("counting ") && (status == STERNA_UNSUPPORTED ? has("machine") || has("kernel")
                                                              : status == STERNA_REFUSED)));
    EXPECT(sterna_counters_destroy(counters) == STERNA_SUCCESS);
  }
  const sterna_status status = sterna_counters_create(events, 2, &shared);
  if (status != STERNA_SUCCESS) { /* What the kernel counts everywhere, it may still forbid. */
    EXPECT((status == STERNA_REFUSED && has("the kernel forbids it")) ||
           (status == STERNA_UNSUPPORTED && has("without perf_event_open")));
    puts("skipped: the kernel counts nothing for this process");
    return;
  }
  EXPECT(sterna_counters_start(shared) == STERNA_UNSUPPORTED);
  EXPECT(sterna_counters_destroy(shared) == STERNA_SUCCESS);
  /* What it is alone, with what a sanitizer adds; the other one's are not there. */
  const uint64_t alone = faults_of_one(events, 0);
  const uint64_t beside = faults_of_one(events, 1);
  EXPECT(alone >= kPages && beside >= kPages && beside < 2 * alone);
}

/* The scheduling of the node. */

static int is_over;
static long turns_of[4];

static void turn(void* count) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    __atomic_fetch_add((long*)count, 1, __ATOMIC_RELAXED);
    sterna_thread_yield();
  }
}

static long all_turns(void) {
  long sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += __atomic_load_n(&turns_of[i], __ATOMIC_RELAXED);
  }
  return sum;
}

static void expect_still(void) {
  const long before = all_turns();
  sterna_thread_sleep(2000000);
  EXPECT(all_turns() == before);
}

static void stops_all(void* argument) {
  (void)argument;
  EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_BUSY && has("already"));
  expect_still();
  EXPECT(sterna_scheduling_unfreeze() == STERNA_SUCCESS);
  EXPECT(sterna_scheduling_unfreeze() == STERNA_REFUSED && has("not frozen"));
}

static void test_freeze(void) {
  sterna_thread* threads[4];
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_create(NULL, turn, &turns_of[i], &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS); /* A kernel thread. */
    expect_still();
    EXPECT(sterna_scheduling_unfreeze() == STERNA_SUCCESS);
    run(stops_all, NULL);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
}

/* Sets of workers. */

static void wanders(void* count) {
  uint64_t set = 0;
  sterna_thread* const me = sterna_thread_self();
  EXPECT(sterna_thread_set_workers(me, NULL, 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_INVALID_ARGUMENT && has("empty"));
  set = 8;
  EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_INVALID_ARGUMENT && has("worker 3"));
  for (int i = 0; i < 20; ++i) {
    set = 1 + (uint64_t)(i & 1);
    EXPECT(sterna_thread_set_workers(me, &set, 1) == STERNA_SUCCESS);
    sterna_thread_yield();
    sterna_thread_info infos[16];
    size_t present = 0;
    EXPECT(sterna_thread_list(infos, 16, &present) == STERNA_SUCCESS);
    for (size_t j = 0; j < present && j < 16; ++j) {
      EXPECT(infos[j].thread != me || infos[j].worker == (uint32_t)(i & 1));
    }
    ++*(int*)count;
  }
}

static void test_workers(void) {
  int count = 0;
  uint64_t words[2] = {7, 7};
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_frozen = 1;
  EXPECT(sterna_thread_create(&options, wanders, &count, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_workers(thread, words, 2) == STERNA_SUCCESS);
  EXPECT(words[0] == 3 && words[1] == 0);
  words[0] = 2;
  EXPECT(sterna_thread_set_workers(thread, words, 2) == STERNA_SUCCESS);
  EXPECT(sterna_thread_workers(thread, words, 1) == STERNA_SUCCESS && words[0] == 2);
  EXPECT(sterna_thread_workers(thread, NULL, 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_worker_disable(1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_workers(thread, words, 1) == STERNA_REFUSED && has("disabled"));
  EXPECT(sterna_worker_enable(1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_workers(thread, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_thread_workers(thread, words, 1) == STERNA_SUCCESS && words[0] == 3);
  EXPECT(sterna_thread_unfreeze(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(count == 20);
}

/* Classes and levels of priority: on one worker the higher ones first, and not at all what is
 * frozen. */

enum { CLASSES = 10 };

static char order[16];
static int order_count;

static void note(void* name) {
  order[order_count++] = *(const char*)name;
}

static void starts_all(void* argument) {
  const uint32_t classes[] = {STERNA_PRIORITY_IDLE,      STERNA_PRIORITY_SYSTEM,
                              STERNA_PRIORITY_BATCH,     STERNA_PRIORITY_REAL_TIME,
                              STERNA_PRIORITY_NORMAL,    STERNA_PRIORITY_NICE(3),
                              STERNA_PRIORITY_NICE(-8),  STERNA_PRIORITY_NICE(-1),
                              STERNA_PRIORITY_LOW_BATCH, STERNA_PRIORITY_NICE(8)};
  sterna_thread** const threads = argument;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0;
  options.is_bound = 1;
  for (int i = 0; i < CLASSES; ++i) {
    options.priority = classes[i];
    EXPECT(sterna_thread_create(&options, note, &"isbrn3-ml8"[i], &threads[i]) == STERNA_SUCCESS);
  }
  options.priority = STERNA_PRIORITY_SYSTEM;
  options.is_frozen = 1;
  EXPECT(sterna_thread_create(&options, note, "f", &threads[CLASSES]) == STERNA_SUCCESS);
}

static void test_classes(void) {
  sterna_thread* threads[CLASSES + 1];
  sterna_thread* starter = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = 0;
  options.is_bound = 1;
  options.priority = STERNA_PRIORITY_SYSTEM;
  options.preemption = STERNA_PREEMPTION_NONE;
  EXPECT(sterna_thread_create(&options, starts_all, threads, &starter) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(starter) == STERNA_SUCCESS);
  for (int i = 0; i < CLASSES; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(strcmp(order, "sr-mn38bli") == 0);
  EXPECT(sterna_thread_unfreeze(threads[CLASSES]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[CLASSES]) == STERNA_SUCCESS);
  EXPECT(strcmp(order, "sr-mn38blif") == 0);
  /* As nice(2): what is beyond is the nearest. */
  EXPECT(STERNA_PRIORITY_NICE(0) == STERNA_PRIORITY_NORMAL);
  EXPECT(STERNA_PRIORITY_NICE(100) == STERNA_PRIORITY_NICE(8));
  EXPECT(STERNA_PRIORITY_NICE(8) == STERNA_PRIORITY_BATCH + 1);
  EXPECT(STERNA_PRIORITY_NICE(-100) == STERNA_PRIORITY_NICE(-8));
  EXPECT(STERNA_PRIORITY_NICE(-8) == STERNA_PRIORITY_REAL_TIME - 1);
}

/* Preemption of others. With the setting slice, `computes` gives way as long as it may. */

static void forbids_itself(void* argument) {
  uint32_t mode = 7;
  sterna_thread* const me = sterna_thread_self();
  EXPECT(sterna_thread_set_preemption(me, STERNA_PREEMPTION_NONE) == STERNA_SUCCESS);
  EXPECT(sterna_thread_preemption(me, &mode) == STERNA_SUCCESS && mode == STERNA_PREEMPTION_NONE);
  EXPECT(sterna_preemption_enable() == STERNA_REFUSED); /* That is another matter. */
  sterna_preemption_disable();
  EXPECT(sterna_preemption_enable() == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_preemption(me, STERNA_PREEMPTION_JOB) == STERNA_SUCCESS);
  *(int*)argument = 1;
}

static void test_preemptible(int has_slices) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  uint32_t mode = 7;
  int has_run = 0;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  run(forbids_itself, &has_run);
  EXPECT(has_run);
  options.worker = 0;
  options.is_bound = 1;
  options.preemption = STERNA_PREEMPTION_NONE;
  options.is_frozen = !has_slices;
  EXPECT(sterna_thread_create(&options, computes, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_preemption(thread, &mode) == STERNA_SUCCESS &&
         mode == STERNA_PREEMPTION_NONE);
  EXPECT(sterna_thread_preemption(thread, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_preemption(NULL, &mode) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_set_preemption(thread, 4) == STERNA_INVALID_ARGUMENT && has("0 to 3"));
  options.preemption = STERNA_PREEMPTION_JOB;
  EXPECT(sterna_thread_create(&options, ends_it, NULL, &other) == STERNA_SUCCESS);
  if (has_slices) {
    sterna_thread_sleep(20000000);
    EXPECT(!__atomic_load_n(&may_end, __ATOMIC_RELAXED)); /* It keeps its worker. */
  }
  EXPECT(sterna_thread_set_preemption(thread, STERNA_PREEMPTION_JOB) == STERNA_SUCCESS);
  EXPECT(sterna_thread_preemption(thread, &mode) == STERNA_SUCCESS &&
         mode == STERNA_PREEMPTION_JOB);
  if (!has_slices) {
    EXPECT(sterna_thread_unfreeze(other) == STERNA_SUCCESS);
  }
  EXPECT(sterna_thread_join(other) == STERNA_SUCCESS); /* With slices: because it gives way. */
  if (!has_slices) {
    EXPECT(sterna_thread_unfreeze(thread) == STERNA_SUCCESS);
  }
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_set_preemption(thread, STERNA_PREEMPTION_JOB) == STERNA_INVALID_ARGUMENT &&
         has("gone"));
}

int main(int argc, char** argv) {
  EXPECT(sterna_scheduling_freeze(0) == STERNA_NOT_STARTED);
  EXPECT(sterna_scheduling_unfreeze() == STERNA_NOT_STARTED);
  EXPECT(sterna_counters_create(NULL, 0, NULL) == STERNA_NOT_STARTED);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_hooks();
  test_counters();
  test_freeze();
  test_workers();
  test_classes();
  test_preemptible(argc > 1 && strcmp(argv[1], "slices") == 0);
  EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS); /* The end unfreezes. */
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
