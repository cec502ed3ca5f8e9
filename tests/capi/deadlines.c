/* One worker, whose thread sleeps in the kernel or, with `slices`, computes: deadlines of others
 * come all the same, and the worker goes to who waited. The first thread waits for the second one:
 * else this never ends. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/io.h"
#include "sterna/seed.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kDelayNs = 10000000, kDelayMs = 10 };

static int ends[2], silent[2];
static int is_over; /* Atomic. */
static sterna_semaphore never = STERNA_SEMAPHORE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void read_one(void* unused) {
  char byte;
  (void)unused;
  while (read(ends[0], &byte, 1) != 1) {
    EXPECT(errno == EINTR); /* As with any program that gets signals. */
  }
}

static void computes(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
  }
}

static void end_it(void* unused) {
  (void)unused;
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  EXPECT(write(ends[1], "", 1) == 1);
}

static void sleeps(void* unused) {
  EXPECT(sterna_thread_sleep(kDelayNs) == STERNA_SUCCESS);
  end_it(unused);
}

static void waits_for_a_unit(void* unused) {
  EXPECT(sterna_semaphore_acquire(&never, kDelayNs) == STERNA_TIMED_OUT);
  end_it(unused);
}

static void polls(void* unused) {
  struct pollfd ready = {silent[0], POLLIN, 0};
  EXPECT(sterna_poll(&ready, 1, kDelayMs) == 0);
  end_it(unused);
}

/* Who waits for the mutex sleeps in the kernel. */
static void holds_a_mutex(void* unused) {
  EXPECT(pthread_mutex_lock(&mutex) == 0);
  sleeps(unused);
  EXPECT(pthread_mutex_unlock(&mutex) == 0);
}

static void locks(void* unused) {
  (void)unused;
  EXPECT(pthread_mutex_lock(&mutex) == 0);
  EXPECT(pthread_mutex_unlock(&mutex) == 0);
}

static void plants(void* unused) {
  sterna_seed seed;
  EXPECT(sterna_seed_plant(&seed, end_it, NULL) == STERNA_SUCCESS);
  read_one(unused);
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
}

/* `waits` begins first. */
static void run(const char* name, void (*waits)(void*), void (*occupies)(void*)) {
  sterna_thread *first = NULL, *second = NULL;
  __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
  if (waits != NULL) {
    EXPECT(sterna_thread_create(NULL, waits, NULL, &first) == STERNA_SUCCESS);
  }
  EXPECT(sterna_thread_create(NULL, occupies, NULL, &second) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(second) == STERNA_SUCCESS);
  EXPECT(waits == NULL || sterna_thread_join(first) == STERNA_SUCCESS);
  printf("%s: the other one goes on\n", name);
  fflush(stdout);
}

static void run_all(void (*occupies)(void*)) {
  sterna_timer timer;
  run("sleep", sleeps, occupies);
  run("semaphore", waits_for_a_unit, occupies);
  run("poll", polls, occupies);
  EXPECT(sterna_timer_init(&timer, end_it, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&timer, kDelayNs) == STERNA_SUCCESS);
  run("timer", NULL, occupies);
  EXPECT(sterna_timer_cancel(&timer) == STERNA_NOT_FOUND);
}

int main(int argc, char** argv) {
  const int has_slices = argc > 1 && strcmp(argv[1], "slices") == 0;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 1;
  EXPECT(pipe(ends) == 0 && pipe(silent) == 0);
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  run_all(read_one);
  run("mutex", holds_a_mutex, locks);
  read_one(NULL);
  run("seed", NULL, plants);
  if (has_slices) {
    run_all(computes);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
