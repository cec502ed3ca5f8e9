/* Parallel loops: every iteration once, by every scheme, from kernel and user threads. */
#include <stdatomic.h>

#include "expect.h"
#include "sterna/loop.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kCount = 1000 };

static atomic_int seen[kCount];

static void count(uint64_t begin, uint64_t end, void* argument) {
  EXPECT(begin < end);
  for (; begin < end; ++begin) {
    atomic_fetch_add((atomic_int*)argument + begin, 1);
  }
}

static void nest(uint64_t begin, uint64_t end, void* argument) {
  for (; begin < end; ++begin) {
    EXPECT(sterna_loop_run(begin * 10, begin * 10 + 10, NULL, count, argument) == STERNA_SUCCESS);
  }
}

static void expect_each(int times) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(atomic_exchange(&seen[i], 0) == times);
  }
}

static void test_all(void* argument) {
  (void)argument;
  for (int scheme = STERNA_LOOP_BLOCK; scheme <= STERNA_LOOP_HIERARCHICAL; ++scheme) {
    sterna_loop_options options = STERNA_LOOP_OPTIONS_DEFAULT;
    options.scheme = (sterna_loop_scheme)scheme;
    EXPECT(sterna_loop_run(0, kCount, &options, count, seen) == STERNA_SUCCESS);
    options.threads = 5;
    options.chunk = 3;
    options.is_bubble = 1;
    EXPECT(sterna_loop_run(0, kCount, &options, count, seen) == STERNA_SUCCESS);
    EXPECT(sterna_loop_run(0, kCount / 10, &options, nest, seen) == STERNA_SUCCESS);
    expect_each(3);
  }
  EXPECT(sterna_loop_run(7, 7, NULL, count, seen) == STERNA_SUCCESS);
  expect_each(0);
}

static void test_errors(void) {
  sterna_loop_options options = STERNA_LOOP_OPTIONS_DEFAULT;
  EXPECT(sterna_loop_run(0, 1, NULL, NULL, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_loop_run(2, 1, NULL, count, seen) == STERNA_INVALID_ARGUMENT);
  options.scheme = (sterna_loop_scheme)9;
  EXPECT(sterna_loop_run(0, 1, &options, count, seen) == STERNA_INVALID_ARGUMENT);
  options.scheme = STERNA_LOOP_GUIDED;
  options.size_bytes = 1;
  EXPECT(sterna_loop_run(0, 1, &options, count, seen) == STERNA_INVALID_ARGUMENT);
  expect_each(0);
}

int main(void) {
  EXPECT(sterna_loop_run(0, 1, NULL, count, seen) == STERNA_NOT_STARTED);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 3;
  options.policy = "spread";
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_all(NULL);
  sterna_thread* thread = NULL;
  sterna_thread_options large = STERNA_THREAD_OPTIONS_DEFAULT;
  large.stack_bytes = 256 * 1024;
  EXPECT(sterna_thread_create(&large, test_all, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  test_errors();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (sterna_node_index() == 0) {
    puts("No Errors");
  }
  return 0;
}
