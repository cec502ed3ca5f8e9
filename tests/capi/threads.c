/* Threads, what they wait for, keys and bubbles; and the errors of wrong calls. */
#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/key.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kThreads = 32, kRounds = 200 };

static sterna_mutex mutex = STERNA_MUTEX_INIT;
static sterna_condition condition = STERNA_CONDITION_INIT;
static sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
static sterna_once once = STERNA_ONCE_INIT;
static sterna_barrier barrier;
static sterna_key key;
static int counter;    /* Guard: mutex. */
static int destroyed;  /* Guard: mutex. */
static int lasts;      /* Guard: mutex. */
static int once_count; /* Of once. */

static void count_once(void* argument) {
  ++*(int*)argument;
}

static void destroy_value(void* value) {
  EXPECT(value == &counter);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  ++destroyed;
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
}

static void work(void* argument) {
  (void)argument;
  int is_last = 0;
  EXPECT(sterna_once_call(&once, count_once, &once_count) == STERNA_SUCCESS);
  EXPECT(once_count == 1);
  EXPECT(sterna_key_get(key) == NULL);
  EXPECT(sterna_key_set(key, &counter) == STERNA_SUCCESS);
  EXPECT(sterna_barrier_wait(&barrier, &is_last) == STERNA_SUCCESS);
  for (int i = 0; i < kRounds; ++i) {
    EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    const int seen = counter;
    if (i % 16 == 0) {
      sterna_thread_yield(); /* Others meet a mutex that is held. */
    }
    counter = seen + 1;
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  }
  EXPECT(sterna_key_get(key) == &counter);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  lasts += is_last;
  EXPECT(sterna_condition_broadcast(&condition) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
}

static void test_many(void) {
  sterna_thread* threads[kThreads];
  EXPECT(sterna_barrier_init(&barrier, kThreads) == STERNA_SUCCESS);
  EXPECT(sterna_key_create(&key, destroy_value) == STERNA_SUCCESS);
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_create(NULL, work, NULL, &threads[i]) == STERNA_SUCCESS);
  }
  /* This is a kernel thread that waits for user threads. */
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  while (counter < kThreads * kRounds) {
    EXPECT(sterna_condition_wait(&condition, &mutex, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(counter == kThreads * kRounds);
  EXPECT(destroyed == kThreads);
  EXPECT(lasts == 1);
  EXPECT(once_count == 1);
  EXPECT(sterna_key_delete(key) == STERNA_SUCCESS);
}

static void park_then_exit(void* argument) {
  int* const flag = argument;
  char name[32];
  EXPECT(sterna_thread_name(sterna_thread_self(), name, sizeof name) == STERNA_SUCCESS);
  EXPECT(strcmp(name, "parked") == 0);
  EXPECT(sterna_thread_name(sterna_thread_self(), name, 3) == STERNA_TRUNCATED);
  EXPECT(strcmp(name, "pa") == 0);
  EXPECT(sterna_thread_join(sterna_thread_self()) == STERNA_DEADLOCK);
  EXPECT(sterna_stop() == STERNA_UNSUPPORTED);
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
    EXPECT(sterna_thread_park(STERNA_FOREVER) == STERNA_SUCCESS);
  }
  sterna_thread_exit();
  EXPECT(!"nothing comes after the exit");
}

static void test_park(void) {
  int flag = 0;
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = "parked";
  EXPECT(sterna_thread_create(&options, park_then_exit, &flag, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_thread_unpark(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

static void count_up(void* argument) {
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED);
}

static void test_bubbles(void) {
  int count = 0;
  sterna_bubble *outer = NULL, *inner = NULL;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  sterna_thread_options wrong = STERNA_THREAD_OPTIONS_DEFAULT;
  wrong.is_frozen = 2;
  EXPECT(sterna_bubble_add_thread(outer, &wrong, count_up, &count) == STERNA_INVALID_ARGUMENT);
  for (int i = 0; i < 10; ++i) {
    EXPECT(sterna_bubble_add_thread(i % 2 ? outer : inner, NULL, count_up, &count) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_add_bubble(outer, outer) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(inner, outer) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_submit(inner) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_join(outer) == STERNA_INVALID_ARGUMENT);
  EXPECT(count == 0);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(outer) == STERNA_BUSY);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(count == 10);
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(outer) == STERNA_SUCCESS);
}

static void test_errors(void) {
  sterna_mutex own = STERNA_MUTEX_INIT;
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_mutex_unlock(&own) == STERNA_NOT_OWNER);
  EXPECT(sterna_mutex_lock(&own) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&own) == STERNA_DEADLOCK);
  EXPECT(sterna_mutex_try_lock(&own) == STERNA_BUSY);
  EXPECT(sterna_condition_wait(&condition, &own, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_mutex_unlock(&own) == STERNA_SUCCESS);
  EXPECT(sterna_condition_wait(&condition, &own, 0) == STERNA_NOT_OWNER);
  EXPECT(sterna_mutex_lock(NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_semaphore_try_acquire(&semaphore) == STERNA_BUSY);
  EXPECT(sterna_semaphore_acquire(&semaphore, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_barrier_init(&barrier, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_create(NULL, NULL, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  options.worker = sterna_worker_count();
  EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_join(NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_self() == NULL);
  EXPECT(sterna_thread_park(0) == STERNA_UNSUPPORTED);
  EXPECT(sterna_thread_exit() == STERNA_UNSUPPORTED);
}

static sterna_bubble* growing;
static int grown;     /* Guard: mutex. */
static int met;       /* Guard: mutex. */
static int met_lasts; /* Guard: mutex. */

static void count_grown(void* argument) {
  (void)argument;
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  ++grown;
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
}

/* Adds to its bubble while that runs; then it meets the others of its own kind. */
static void grow(void* argument) {
  sterna_bubble* inner = NULL;
  EXPECT(sterna_bubble_add_thread(growing, NULL, count_grown, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, NULL, count_grown, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(growing, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_barrier(inner, NULL) == STERNA_INVALID_ARGUMENT);
  for (int i = 0; i < 5; ++i) {
    int is_last = 0;
    int seen = 0;
    EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    ++met;
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_barrier(growing, &is_last) == STERNA_SUCCESS);
    EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    seen = met;
    met_lasts += is_last;
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
    EXPECT(seen >= 4 * (i + 1)); /* Those that were added have ended, or will: they never come. */
  }
  if (argument != NULL) {
    EXPECT(sterna_thread_exit() == STERNA_SUCCESS);
  }
}

static void test_growing_bubble(void) {
  sterna_bubble* deep = NULL;
  sterna_bubble* outer = NULL;
  EXPECT(sterna_bubble_create(&growing) == STERNA_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_bubble_add_thread(growing, NULL, grow, i == 0 ? &grown : NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(growing) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(growing) == STERNA_SUCCESS);
  EXPECT(grown == 8 && met == 20 && met_lasts <= 5);
  /* Without end they do not nest, and the refusal names the rule. */
  EXPECT(sterna_bubble_create(&deep) == STERNA_SUCCESS);
  for (int i = 0;; ++i) {
    EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS && i < 100);
    const sterna_status status = sterna_bubble_add_bubble(outer, deep);
    if (status != STERNA_SUCCESS) {
      EXPECT(status == STERNA_INVALID_ARGUMENT);
      char text[256];
      EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
      EXPECT(strstr(text, "nested 60 deep at most") != NULL);
      break;
    }
    deep = outer;
  }
  EXPECT(sterna_bubble_destroy(outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(deep) == STERNA_SUCCESS);
}

int main(void) {
  sterna_thread* thread = NULL;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  EXPECT(sterna_stop() == STERNA_NOT_STARTED);
  EXPECT(sterna_thread_create(NULL, work, NULL, &thread) == STERNA_NOT_STARTED);
  options.policy = "no such policy";
  EXPECT(sterna_start(&options) == STERNA_INVALID_ARGUMENT);
  options.policy = "spread";
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  EXPECT(sterna_start(NULL) == STERNA_BUSY);
  EXPECT(sterna_worker_count() == 2);
  EXPECT(sterna_rank() < sterna_rank_count());
  test_many();
  test_park();
  test_bubbles();
  test_growing_bubble();
  test_errors();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_NOT_STARTED);
  puts("No Errors");
  return 0;
}
