/* Workers are where the process may run, from the start and when that changes. Argument: how many
 * are to be there; "watch"; or "chosen FIRST STRIDE", as the settings of the job say. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static cpu_set_t allowed;
static atomic_int is_over;
static atomic_int turns;

static void look(void* argument) {
  (void)argument;
  EXPECT(CPU_ISSET(sched_getcpu(), &allowed));
}

static void turn(void* argument) {
  (void)argument;
  while (atomic_load(&is_over) == 0) {
    atomic_fetch_add(&turns, 1);
    sterna_thread_yield();
  }
}

static void run(int count, sterna_thread_function function, sterna_thread** threads) {
  for (int i = 0; i < count; ++i) {
    EXPECT(sterna_thread_create(NULL, function, NULL, &threads[i]) == STERNA_SUCCESS);
  }
}

static void join(int count, sterna_thread** threads) {
  for (int i = 0; i < count; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
}

static void expect_enabled(uint32_t expected) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < sterna_worker_count(); ++i) {
    count += (uint32_t)sterna_worker_is_enabled(i);
  }
  EXPECT(count == expected);
}

/* As taskset -ap does to a running process: first one processor less, then all again. */
static void test_follow(uint32_t workers) {
  sterna_thread* threads[8];
  run(8, turn, threads);
  cpu_set_t fewer = allowed;
  int taken = CPU_SETSIZE - 1;
  while (!CPU_ISSET(taken, &allowed)) {
    --taken;
  }
  CPU_CLR(taken, &fewer);
  EXPECT(sched_setaffinity(getpid(), sizeof fewer, &fewer) == 0);
  uint32_t changed = 9;
  EXPECT(sterna_workers_follow(&changed) == STERNA_SUCCESS && changed == 1);
  EXPECT(!sterna_worker_is_enabled(workers - 1));
  const int before = atomic_load(&turns);
  while (atomic_load(&turns) < before + 10000) {
    sterna_thread_sleep(100000);
  }
  EXPECT(sched_setaffinity(getpid(), sizeof allowed, &allowed) == 0);
  EXPECT(sterna_workers_follow(&changed) == STERNA_SUCCESS && changed == 1);
  expect_enabled(workers);
  EXPECT(sterna_workers_follow(&changed) == STERNA_SUCCESS && changed == 0);
  atomic_store(&is_over, 1);
  join(8, threads);
}

static void test_calls(uint32_t workers) {
  EXPECT(sterna_worker_disable(workers) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_worker_enable(workers) == STERNA_INVALID_ARGUMENT);
  EXPECT(!sterna_worker_is_enabled(workers));
  for (uint32_t i = 1; i < workers; ++i) {
    EXPECT(sterna_worker_disable(i) == STERNA_SUCCESS);
  }
  EXPECT(sterna_worker_disable(0) == STERNA_REFUSED);
  sterna_thread* threads[8];
  run(8, look, threads);
  join(8, threads);
  for (uint32_t i = 1; i < workers; ++i) {
    EXPECT(sterna_worker_enable(i) == STERNA_SUCCESS);
  }
  expect_enabled(workers);
}

/* The settings worker_first and worker_stride leave every stride-th processor from the first on. */
static void test_chosen(int first, int stride) {
  EXPECT(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const sterna_status status = sterna_start(NULL);
  if (first >= CPU_COUNT(&allowed)) {
    EXPECT(status == STERNA_INVALID_ARGUMENT);
    return;
  }
  EXPECT(status == STERNA_SUCCESS);
  int index = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    index += CPU_ISSET(cpu, &allowed) ? 1 : 0;
    if (index < first || (index - first) % stride != 0) {
      CPU_CLR(cpu, &allowed);
    }
  }
  sterna_thread* threads[8];
  EXPECT(sterna_worker_count() == (uint32_t)CPU_COUNT(&allowed));
  run(8, look, threads);
  join(8, threads);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
}

/* Tells who restricts it (restricted.py) when it has noticed. */
static void watch(void) {
  sterna_thread* threads[8];
  run(8, turn, threads);
  const uint32_t workers = sterna_worker_count();
  printf("all %d\n", (int)getpid());
  fflush(stdout);
  for (int is_back = 0; is_back < 2; ++is_back) {
    while (sterna_worker_is_enabled(workers - 1) != is_back) {
      sterna_thread_sleep(1000000);
    }
    const int before = atomic_load(&turns);
    while (atomic_load(&turns) < before + 1000) {
      sterna_thread_sleep(100000);
    }
    printf("%s %d\n", is_back ? "all" : "fewer", (int)getpid());
    fflush(stdout);
  }
  atomic_store(&is_over, 1);
  join(8, threads);
}

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == 'w') {
    EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
    watch();
    EXPECT(sterna_stop() == STERNA_SUCCESS);
    puts("No Errors");
    return 0;
  }
  if (argc > 3 && argv[1][0] == 'c') { /* chosen FIRST STRIDE */
    test_chosen(atoi(argv[2]), atoi(argv[3]));
    puts("No Errors");
    return 0;
  }
  EXPECT(sterna_workers_follow(NULL) == STERNA_NOT_STARTED);
  EXPECT(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const uint32_t expected = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)CPU_COUNT(&allowed);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  const uint32_t workers = sterna_worker_count();
  EXPECT(workers == expected && workers == (uint32_t)CPU_COUNT(&allowed));
  sterna_thread* threads[8];
  run(8, look, threads);
  join(8, threads);
  test_calls(workers);
  if (workers > 1) {
    test_follow(workers);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
