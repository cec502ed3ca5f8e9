/* Seeds of the C API: recursion, order, options, bubbles, misuse told in words. */
#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/seed.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"

static void expect_detail(const char* word) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, word) != NULL);
}

typedef struct sum {
  const int* numbers;
  int count;
  long result;
} sum;

static void add_up(void* argument) {
  sum* const all = argument;
  if (all->count == 1) {
    all->result = all->numbers[0];
    return;
  }
  sum lower = {all->numbers, all->count / 2, 0};
  sum upper = {all->numbers + lower.count, all->count - lower.count, 0};
  sterna_seed seed;
  EXPECT(sterna_seed_plant(&seed, add_up, &lower) == STERNA_SUCCESS);
  EXPECT(sterna_seed_thread(&seed) == NULL);
  add_up(&upper);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  all->result = lower.result + upper.result;
}

static int numbers[4096];

static void test_recursion(void* unused) {
  sum all = {numbers, 4096, 0};
  (void)unused;
  for (int i = 0; i < 4096; ++i) {
    numbers[i] = i;
  }
  add_up(&all);
  EXPECT(all.result == 4096L * 4095 / 2);
}

static void count(void* argument) {
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED);
}

static void test_misuse(void* unused) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_seed seed;
  int runs = 0;
  (void)unused;
  EXPECT(sterna_seed_plant(NULL, count, &runs) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_seed_plant(&seed, NULL, &runs) == STERNA_INVALID_ARGUMENT);
  options.is_detached = 1;
  EXPECT(sterna_seed_plant_with(&seed, &options, count, &runs) == STERNA_INVALID_ARGUMENT);
  expect_detail("detached");
  EXPECT(sterna_seed_plant(&seed, count, &runs) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_INVALID_ARGUMENT);
  expect_detail("once");
  EXPECT(sterna_seed_withdraw(&seed) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_seed_join(NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(runs == 1);
}

static void note(void* place) {
  static int turn = 0;
  *(int*)place = __atomic_add_fetch(&turn, 1, __ATOMIC_RELAXED);
}

/* In any order, and more than a deque has room for at first. */
static void test_order(void* unused) {
  enum { kMany = 1000 };
  static sterna_seed seeds[kMany];
  static int turns[kMany];
  long sum = 0;
  (void)unused;
  for (int i = 0; i < kMany; ++i) {
    EXPECT(sterna_seed_plant(&seeds[i], note, &turns[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kMany; i += 2) {
    EXPECT(sterna_seed_join(&seeds[i]) == STERNA_SUCCESS);
    EXPECT(turns[i] != 0);
  }
  for (int i = kMany - 1; i > 0; i -= 2) {
    EXPECT(sterna_seed_join(&seeds[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kMany; ++i) {
    sum += turns[i];
  }
  EXPECT(sum == kMany * (kMany + 1L) / 2);
}

/* What a seed does is done by the code of the program: its calls switch, and it plants as well. */
static void yield_and_sum(void* argument) {
  EXPECT(sterna_thread_yield() == STERNA_SUCCESS);
  add_up(argument);
  EXPECT(sterna_thread_sleep(1000) == STERNA_SUCCESS);
}

static void test_calls(void* unused) {
  sterna_seed seeds[8];
  sum sums[8];
  (void)unused;
  for (int i = 0; i < 8; ++i) {
    sums[i] = (sum){numbers + 512 * i, 512, 0};
    EXPECT(sterna_seed_plant(&seeds[i], yield_and_sum, &sums[i]) == STERNA_SUCCESS);
  }
  long all = 0;
  for (int i = 7; i >= 0; --i) {
    EXPECT(sterna_seed_join(&seeds[i]) == STERNA_SUCCESS);
    all += sums[i].result;
  }
  EXPECT(all == 4096L * 4095 / 2);
}

static void test_options(void* unused) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_seed seed;
  int runs = 0;
  (void)unused;
  options.is_frozen = 1;
  EXPECT(sterna_seed_plant_with(&seed, &options, count, &runs) == STERNA_SUCCESS);
  EXPECT(sterna_seed_withdraw(&seed) == STERNA_BUSY);
  EXPECT(sterna_thread_unfreeze(sterna_seed_thread(&seed)) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  EXPECT(runs == 1);
}

/* Seeds of a bubble's thread are threads of the bubble, once they are threads. */
static void test_in_bubble(void* runs) {
  sterna_seed seeds[8];
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_seed_plant(&seeds[i], count, runs) == STERNA_SUCCESS);
    EXPECT(sterna_seed_thread(&seeds[i]) == NULL);
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_seed_join(&seeds[i]) == STERNA_SUCCESS);
  }
}

static sterna_bubble* the_bubble = NULL;

typedef struct visit {
  sterna_semaphore begun;
  sterna_thread* planter;
} visit;

static void look_around(void* argument) {
  visit* const its = argument;
  sterna_bubble* holder = NULL;
  EXPECT(sterna_thread_self() != its->planter);
  EXPECT(sterna_held_holder(sterna_held_thread(sterna_thread_self()), &holder) == STERNA_SUCCESS);
  EXPECT(holder == the_bubble);
  EXPECT(sterna_semaphore_release(&its->begun, 1) == STERNA_SUCCESS);
}

/* Its planter waits for what it does. */
static void test_germinating(void* unused) {
  visit its;
  sterna_seed seed;
  (void)unused;
  its.planter = sterna_thread_self();
  EXPECT(sterna_semaphore_init(&its.begun, 0) == STERNA_SUCCESS);
  EXPECT(sterna_seed_plant(&seed, look_around, &its) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&its.begun, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_seed_withdraw(&seed) == STERNA_BUSY);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
}

/* In a bubble that is more urgent than others they are threads at once. */
static void test_urgent(void* runs) {
  sterna_seed seed;
  EXPECT(sterna_seed_plant(&seed, count, runs) == STERNA_SUCCESS);
  EXPECT(sterna_seed_thread(&seed) != NULL);
  EXPECT(sterna_seed_withdraw(&seed) == STERNA_BUSY);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
}

static void run_in_bubble(sterna_thread_function function, void* argument, int threads,
                          uint32_t priority) {
  EXPECT(sterna_bubble_create(&the_bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_priority(the_bubble, priority) == STERNA_SUCCESS);
  for (int i = 0; i < threads; ++i) {
    EXPECT(sterna_bubble_add_thread(the_bubble, NULL, function, argument) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(the_bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(the_bubble) == STERNA_SUCCESS);
}

/* Two workers, one of which has nothing to do but take the seeds of the other one, and is preempted
 * where slices are asked for. */
static void test_thieves(void) {
  sterna_thread* threads[3];
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 3; ++i) {
      EXPECT(sterna_thread_create(NULL, i == 0 ? test_recursion : test_calls, NULL, &threads[i]) ==
             STERNA_SUCCESS);
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
    }
  }
}

static void run_on_thread(sterna_thread_function function) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(NULL, function, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

int main(void) {
  sterna_seed seed;
  int runs = 0;
  EXPECT(sterna_seed_plant(&seed, count, &runs) == STERNA_NOT_STARTED);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  run_on_thread(test_recursion);
  run_on_thread(test_order);
  run_on_thread(test_calls);
  test_thieves();
  run_on_thread(test_misuse);
  run_on_thread(test_options);
  /* On a kernel thread it is a thread from the start. */
  EXPECT(sterna_seed_plant(&seed, count, &runs) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_INVALID_ARGUMENT);
  EXPECT(runs == 1);
  run_in_bubble(test_in_bubble, &runs, 4, STERNA_PRIORITY_NORMAL);
  EXPECT(runs == 33);
  run_in_bubble(test_recursion, NULL, 1, STERNA_PRIORITY_NORMAL);
  run_in_bubble(test_germinating, NULL, 3, STERNA_PRIORITY_NORMAL);
  run_in_bubble(test_urgent, &runs, 1, STERNA_PRIORITY_NORMAL + 1);
  EXPECT(runs == 34);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
