/* Seeds of the C API: recursion, order, options, bubbles, misuse told in words. */
#include "sterna/seed.h"

#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
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
  EXPECT(runs == 1);
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

/* Seeds of a bubble's thread are threads of the bubble. */
static void test_in_bubble(void* runs) {
  sterna_seed seeds[8];
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_seed_plant(&seeds[i], count, runs) == STERNA_SUCCESS);
    EXPECT(sterna_seed_thread(&seeds[i]) != NULL);
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_seed_join(&seeds[i]) == STERNA_SUCCESS);
  }
}

static void run_on_thread(sterna_thread_function function) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(NULL, function, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

int main(void) {
  sterna_seed seed;
  sterna_bubble* bubble = NULL;
  int runs = 0;
  EXPECT(sterna_seed_plant(&seed, count, &runs) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  run_on_thread(test_recursion);
  run_on_thread(test_misuse);
  run_on_thread(test_options);
  /* On a kernel thread it is a thread from the start. */
  EXPECT(sterna_seed_plant(&seed, count, &runs) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_INVALID_ARGUMENT);
  EXPECT(runs == 1);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_bubble_add_thread(bubble, NULL, test_in_bubble, &runs) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(runs == 33);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
