/* Tasklets and polling tasks: coalesced, disabled, bound, from user threads, timers, kernel threads
 * and polling tasks; and what wrong calls get. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/tasklet.h"
#include "sterna/thread.h"

enum { kAsks = 2000 };

static sterna_tasklet tasklet;
static sterna_semaphore done = STERNA_SEMAPHORE_INIT;
static int runs; /* Atomic, as the next three. */
static int asked;
static int seen;
static int inside;
static uint32_t where;

static void note(void* argument) {
  (void)argument;
  EXPECT(sterna_thread_self() != NULL);
  __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
  EXPECT(sterna_semaphore_release(&done, 1) == STERNA_SUCCESS);
}

static void wait_done(void) {
  EXPECT(sterna_semaphore_acquire(&done, STERNA_FOREVER) == STERNA_SUCCESS);
}

static void init(void (*function)(void*), uint32_t flags) {
  EXPECT(sterna_tasklet_init(&tasklet, function, NULL, flags) == STERNA_SUCCESS);
  runs = 0;
}

static void test_coalesced(void) {
  int is_new = -1;
  uint32_t state = 0;
  init(note, 0);
  EXPECT(sterna_tasklet_disable(&tasklet) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_schedule(&tasklet, &is_new) == STERNA_SUCCESS && is_new == 1);
  EXPECT(sterna_tasklet_schedule(&tasklet, &is_new) == STERNA_SUCCESS && is_new == 0);
  EXPECT(sterna_tasklet_state(&tasklet, &state) == STERNA_SUCCESS);
  EXPECT(state == (STERNA_TASKLET_SCHEDULED | STERNA_TASKLET_DISABLED));
  EXPECT(sterna_tasklet_enable(&tasklet) == STERNA_SUCCESS);
  wait_done();
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_SUCCESS);
  EXPECT(runs == 1);
  EXPECT(sterna_tasklet_state(&tasklet, &state) == STERNA_SUCCESS && state == 0);
  /* What is taken back does not run. */
  EXPECT(sterna_tasklet_disable(&tasklet) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_enable(&tasklet) == STERNA_SUCCESS);
  sterna_thread_sleep(1000000);
  EXPECT(runs == 1);
}

static void note_place(void* argument) {
  sterna_thread_info infos[32];
  size_t count = 0;
  EXPECT(sterna_thread_list(infos, 32, &count) == STERNA_SUCCESS && count <= 32);
  for (size_t i = 0; i < count; ++i) {
    if (infos[i].thread == sterna_thread_self()) {
      where = infos[i].worker;
    }
  }
  note(argument);
}

static void test_places(void) {
  init(note_place, STERNA_TASKLET_UNPREEMPTIBLE);
  for (uint32_t i = 0; i < 20; ++i) {
    const uint32_t worker = i % sterna_worker_count();
    char place[16];
    snprintf(place, sizeof place, "pu:%u", worker);
    if (i % 2 == 0) {
      EXPECT(sterna_tasklet_set_place(&tasklet, place) == STERNA_SUCCESS);
      EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_SUCCESS);
    } else {
      EXPECT(sterna_tasklet_schedule_at(&tasklet, place, NULL) == STERNA_SUCCESS);
    }
    wait_done();
    EXPECT(where == worker);
  }
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_SUCCESS);
}

static void count_asked(void* argument) {
  (void)argument;
  EXPECT(__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) == 0);
  __atomic_store_n(&seen, __atomic_load_n(&asked, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
}

static void ask(void* argument) {
  (void)argument;
  for (int i = 0; i < kAsks; ++i) {
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_SUCCESS);
    if (i % 16 == 0) {
      sterna_thread_yield();
    }
  }
}

static void* ask_foreign(void* argument) {
  ask(argument);
  return NULL;
}

static void test_storm(void) {
  sterna_thread* threads[3];
  pthread_t foreign;
  uint32_t state = STERNA_TASKLET_BUSY;
  init(count_asked, 0);
  EXPECT(pthread_create(&foreign, NULL, ask_foreign, NULL) == 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_thread_create(NULL, ask, NULL, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT(sterna_tasklet_disable(&tasklet) == STERNA_SUCCESS);
    EXPECT(__atomic_load_n(&inside, __ATOMIC_RELAXED) == 0);
    EXPECT(sterna_tasklet_enable(&tasklet) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(pthread_join(foreign, NULL) == 0);
  while ((state & (STERNA_TASKLET_BUSY | STERNA_TASKLET_SCHEDULED)) != 0) {
    EXPECT(sterna_tasklet_state(&tasklet, &state) == STERNA_SUCCESS);
    sterna_thread_yield();
  }
  EXPECT(asked == 4 * kAsks && seen == asked);
}

static void wrong_calls(void* argument) {
  (void)argument;
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_DEADLOCK);
  note(NULL);
  EXPECT(sterna_thread_exit() == STERNA_SUCCESS); /* Ends this run, no more. */
}

static void test_refusals(void) {
  sterna_tasklet none;
  char text[240];
  memset(&none, 0, sizeof none);
  EXPECT(sterna_tasklet_init(NULL, note, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_tasklet_init(&none, NULL, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_tasklet_init(&none, note, NULL, 64) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_tasklet_schedule(&none, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, "was not initialised") != NULL);
  init(wrong_calls, 0);
  EXPECT(sterna_tasklet_enable(&tasklet) == STERNA_REFUSED);
  EXPECT(sterna_tasklet_set_place(&tasklet, "moon:0") == STERNA_NOT_FOUND);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_SUCCESS);
    wait_done();
  }
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_SUCCESS && runs == 3);
}

static int polls; /* Atomic. */

static uint32_t poll_once(void* argument) {
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED);
  return 1;
}

static sterna_semaphore never;

/* What would wait is refused, also though it would not have to this time. */
static uint32_t poll_and_wait(void* argument) {
  EXPECT(sterna_semaphore_acquire(&never, STERNA_FOREVER) == STERNA_DEADLOCK);
  EXPECT(sterna_thread_sleep(1000) == STERNA_DEADLOCK);
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELEASE);
  return 1;
}

static void test_waiting_inside(void) {
  sterna_poll_task task;
  int is_in = 1, count = 0;
  EXPECT(sterna_semaphore_init(&never, 0) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_init(&task, poll_and_wait, &count, STERNA_POLL_ANY, 0) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_set_priority(&task, 128) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_poll_task_set_priority(&task, -7) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&task) == STERNA_SUCCESS);
  while (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0) {
    EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_poll_task_is_in(&task, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_poll_task_is_in(&task, &is_in) == STERNA_SUCCESS && is_in == 0 && count == 1);
}

static sterna_poll_task lingerer;
static int steps; /* Atomic. 1: it is inside; 2: somebody is about to wait for it; 3: it ends. */

static uint32_t poll_and_linger(void* removes_itself) {
  if (removes_itself != NULL) {
    EXPECT(sterna_poll_task_remove(&lingerer) == STERNA_SUCCESS);
  }
  __atomic_store_n(&steps, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&steps, __ATOMIC_ACQUIRE) != 2) {
  }
  usleep(20000);
  __atomic_store_n(&steps, 3, __ATOMIC_RELEASE);
  return 0;
}

static void* poll_until_inside(void* argument) {
  while (__atomic_load_n(&steps, __ATOMIC_ACQUIRE) == 0) {
    EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS);
  }
  return argument;
}

/* Who removes a task that is out of its own accord waits for its end all the same. */
static void test_end_of_call(void) {
  for (int removes_itself = 0; removes_itself < 2; ++removes_itself) {
    pthread_t poller;
    __atomic_store_n(&steps, 0, __ATOMIC_RELAXED);
    EXPECT(sterna_poll_task_init(&lingerer, poll_and_linger, removes_itself ? &steps : NULL,
                                 STERNA_POLL_FORCED, removes_itself) == STERNA_SUCCESS);
    EXPECT(sterna_poll_task_add(&lingerer) == STERNA_SUCCESS);
    EXPECT(pthread_create(&poller, NULL, poll_until_inside, NULL) == 0);
    while (__atomic_load_n(&steps, __ATOMIC_ACQUIRE) != 1) {
      usleep(100);
    }
    __atomic_store_n(&steps, 2, __ATOMIC_RELEASE);
    EXPECT(sterna_poll_task_remove(&lingerer) == STERNA_NOT_FOUND);
    EXPECT(__atomic_load_n(&steps, __ATOMIC_ACQUIRE) == 3);
    EXPECT(pthread_join(poller, NULL) == 0);
  }
}

static uint32_t poll_and_leave_work(void* argument) {
  (void)argument;
  if (__atomic_fetch_add(&polls, 1, __ATOMIC_RELAXED) == 0) {
    EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_SUCCESS);
  }
  return 0;
}

static void test_polling(void) {
  sterna_poll_task once, forced, idle;
  int count = 0, forced_count = 0;
  uint32_t events = 0;
  EXPECT(sterna_poll_task_init(&once, poll_once, &count, 0, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_poll_task_init(&once, poll_once, &count, STERNA_POLL_ANY, 0) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&once) == STERNA_SUCCESS);
  while (__atomic_load_n(&count, __ATOMIC_RELAXED) == 0) {
    EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_poll_task_remove(&once) == STERNA_NOT_FOUND && count == 1);
  EXPECT(sterna_poll_task_init(&forced, poll_once, &forced_count, STERNA_POLL_FORCED, 1) ==
         STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&forced) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&forced) == STERNA_BUSY);
  for (int found = 0; found < 5;) { /* Somebody else may have the turn. */
    EXPECT(sterna_poll_now(&events) == STERNA_SUCCESS);
    found += events != 0;
  }
  EXPECT(sterna_poll_task_mask(&forced) == STERNA_SUCCESS);
  const int before = forced_count;
  EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS && forced_count == before);
  EXPECT(sterna_poll_task_unmask(&forced) == STERNA_SUCCESS);
  while (__atomic_load_n(&forced_count, __ATOMIC_RELAXED) == before) {
    EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_poll_task_remove(&forced) == STERNA_SUCCESS && forced_count >= 5);
  EXPECT(sterna_poll_task_set_place(&forced, "cellar:0") == STERNA_NOT_FOUND);
  EXPECT(sterna_poll_task_set_place(&forced, "machine:0") == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_set_place(&forced, NULL) == STERNA_SUCCESS);
  /* Workers that sleep get up for it; what takes long it leaves to a tasklet. */
  init(note, 0);
  EXPECT(sterna_poll_task_init(&idle, poll_and_leave_work, NULL, STERNA_POLL_IDLE, 1) ==
         STERNA_SUCCESS);
  EXPECT(sterna_poll_task_set_period(&idle, 1000000) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&idle) == STERNA_SUCCESS);
  wait_done();
  while (__atomic_load_n(&polls, __ATOMIC_RELAXED) < 5) {
    usleep(500);
  }
  EXPECT(sterna_poll_task_remove(&idle) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_cancel(&tasklet) == STERNA_SUCCESS && runs == 1);
}

/* While all workers compute, the ticker polls. */
static void compute_until_polled(void* count) {
  while (__atomic_load_n((int*)count, __ATOMIC_RELAXED) == 0) {
  }
}

static void test_tick(void) {
  sterna_poll_task task;
  sterna_thread* threads[64];
  int count = 0;
  const uint32_t workers = sterna_worker_count();
  EXPECT(workers <= 64);
  EXPECT(sterna_poll_task_init(&task, poll_once, &count, STERNA_POLL_TICK, 1) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&task) == STERNA_SUCCESS);
  for (uint32_t i = 0; i < workers; ++i) {
    sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
    options.worker = i;
    options.is_bound = 1;
    EXPECT(sterna_thread_create(&options, compute_until_polled, &count, &threads[i]) ==
           STERNA_SUCCESS);
  }
  for (uint32_t i = 0; i < workers; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_poll_task_remove(&task) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_tasklet_init(&tasklet, note, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_schedule(&tasklet, NULL) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_coalesced();
  if (sterna_node_count() == 1) { /* Worker i is on processor i. */
    test_places();
  }
  test_waiting_inside();
  test_storm();
  test_refusals();
  test_polling();
  test_end_of_call();
  test_tick();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
