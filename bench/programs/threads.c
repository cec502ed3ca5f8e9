/* What user threads cost those who use them as programs do: by the calls of thread.h and sync.h, in
 * a program that is linked to libsterna. Prints the medians of several rounds, in ns.
 *
 * usage: threads one ROUNDS     one worker: what bench/programs/fiber.cc has of Boost.Fiber
 *        threads across ROUNDS  two workers, one thread bound to each, both awake: one way
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>
#include <string.h>
#include <time.h>

#include "timing.h"

enum { kThreadsMax = 1024, kRoundsMax = 99 };

static int rounds = 9;

/* What a crowd of threads needs: how often each does it, and on what. */
typedef struct {
  int each;
  uint32_t answerer; /* Worker of the one that answers; STERNA_ANY_WORKER: that of the caller. */
  sterna_barrier barrier;
  sterna_semaphore ping, pong;
  sterna_mutex mutex;
  sterna_condition changed;
  int turn; /* Guard: mutex. Whose: 0 the leader's, 1 the other's. */
} crowd;

static void check(sterna_status status, const char* what) {
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "threads: %s: %s\n", what, sterna_status_text(status));
    exit(1);
  }
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void run_threads(int count, sterna_thread_function body, void* argument) {
  static sterna_thread* all[kThreadsMax];
  for (int i = 0; i < count; ++i) {
    check(sterna_thread_create(NULL, body, argument, &all[i]), "sterna_thread_create");
  }
  for (int i = 0; i < count; ++i) {
    check(sterna_thread_join(all[i]), "sterna_thread_join");
  }
}

static void yield_often(void* argument) {
  for (int i = ((crowd*)argument)->each; i > 0; --i) {
    sterna_thread_yield();
  }
}

static double time_yields(crowd* its, int count) {
  its->each = 40000 / count;
  const double begin = now_ns();
  run_threads(count, yield_often, its);
  return (now_ns() - begin) / (its->each * count);
}

static double time_yields_of_2(crowd* its) {
  return time_yields(its, 2);
}
static double time_yields_of_1000(crowd* its) {
  return time_yields(its, 1000);
}

static void do_nothing(void* argument) {
  (void)argument;
}

static double time_creates(crowd* its) {
  enum { kCount = 20000 };
  (void)its;
  const double begin = now_ns();
  for (int i = 0; i < kCount; ++i) {
    run_threads(1, do_nothing, NULL);
  }
  return (now_ns() - begin) / kCount;
}

static void meet_often(void* argument) {
  crowd* const its = argument;
  for (int i = its->each; i > 0; --i) {
    sterna_barrier_wait(&its->barrier, NULL);
  }
}

static double time_barriers(crowd* its, int count) {
  its->each = 100000 / count;
  check(sterna_barrier_init(&its->barrier, (uint32_t)count), "sterna_barrier_init");
  const double begin = now_ns();
  run_threads(count, meet_often, its);
  const double time = (now_ns() - begin) / (its->each * count);
  check(sterna_barrier_destroy(&its->barrier), "sterna_barrier_destroy");
  return time;
}

static double time_barriers_of_64(crowd* its) {
  return time_barriers(its, 64);
}
static double time_barriers_of_1024(crowd* its) {
  return time_barriers(its, 1024);
}

static double time_locks(crowd* its) {
  enum { kCount = 50000 };
  const double begin = now_ns();
  for (int i = 0; i < kCount; ++i) {
    sterna_mutex_lock(&its->mutex);
    sterna_mutex_unlock(&its->mutex);
  }
  return (now_ns() - begin) / kCount;
}

/* A ping-pong of the caller, which calls `lead`, and a thread that calls `answer`: one way. */
static double time_ping_pong(crowd* its, sterna_thread_function answer, void (*lead)(crowd* its)) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.worker = its->answerer;
  options.is_bound = its->answerer != STERNA_ANY_WORKER;
  its->each = 20000;
  const double begin = now_ns();
  sterna_thread* other;
  check(sterna_thread_create(&options, answer, its, &other), "sterna_thread_create");
  lead(its);
  check(sterna_thread_join(other), "sterna_thread_join");
  return (now_ns() - begin) / (2.0 * its->each);
}

static void answer_units(void* argument) {
  crowd* const its = argument;
  for (int i = its->each; i > 0; --i) {
    sterna_semaphore_acquire(&its->ping, STERNA_FOREVER);
    sterna_semaphore_release(&its->pong, 1);
  }
}
static void send_units(crowd* its) {
  for (int i = its->each; i > 0; --i) {
    sterna_semaphore_release(&its->ping, 1);
    sterna_semaphore_acquire(&its->pong, STERNA_FOREVER);
  }
}
static double time_semaphores(crowd* its) {
  return time_ping_pong(its, answer_units, send_units);
}

/* Waits for its turn, and gives it to the other one, as often as the other one does. */
static void take_turns(crowd* its, int mine) {
  sterna_mutex_lock(&its->mutex);
  for (int i = its->each; i > 0; --i) {
    while (its->turn != mine) {
      sterna_condition_wait(&its->changed, &its->mutex, STERNA_FOREVER);
    }
    its->turn = 1 - mine;
    sterna_condition_signal(&its->changed);
  }
  sterna_mutex_unlock(&its->mutex);
}
static void take_other_turns(void* argument) {
  take_turns(argument, 1);
}
static void take_own_turns(crowd* its) {
  take_turns(its, 0);
}
static double time_conditions(crowd* its) {
  return time_ping_pong(its, take_other_turns, take_own_turns);
}

static void print_median(const char* name, double (*measure)(crowd* its), crowd* its) {
  double times[kRoundsMax];
  for (int i = 0; i < rounds; ++i) {
    times[i] = measure(its);
  }
  printf("%s %.3f\n", name, median(times, rounds));
}

static crowd the_crowd; /* All zeroes: its locks are free. */

static void measure_one(void* argument) {
  (void)argument;
  the_crowd.answerer = STERNA_ANY_WORKER;
  print_median("yield2", time_yields_of_2, &the_crowd);
  print_median("yield1000", time_yields_of_1000, &the_crowd);
  print_median("create", time_creates, &the_crowd);
  print_median("barrier64", time_barriers_of_64, &the_crowd);
  print_median("barrier1024", time_barriers_of_1024, &the_crowd);
  print_median("mutex", time_locks, &the_crowd);
  print_median("semaphore", time_semaphores, &the_crowd);
  print_median("condition", time_conditions, &the_crowd);
}

static void measure_across(void* argument) {
  (void)argument;
  the_crowd.answerer = 1;
  print_median("semaphore", time_semaphores, &the_crowd);
  print_median("condition", time_conditions, &the_crowd);
}

int main(int argc, char** argv) {
  const int is_across = argc > 1 && strcmp(argv[1], "across") == 0;
  if (argc > 2) {
    rounds = atoi(argv[2]);
    rounds = rounds < 1 ? 1 : rounds > kRoundsMax ? kRoundsMax : rounds;
  }
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = is_across ? 2 : 1;
  check(sterna_start(&options), "sterna_start");
  sterna_thread_options leader = STERNA_THREAD_OPTIONS_DEFAULT;
  leader.worker = 0;
  leader.is_bound = 1;
  sterna_thread* thread;
  check(sterna_thread_create(&leader, is_across ? measure_across : measure_one, NULL, &thread),
        "sterna_thread_create");
  check(sterna_thread_join(thread), "sterna_thread_join");
  return sterna_stop() == STERNA_SUCCESS ? 0 : 1;
}
