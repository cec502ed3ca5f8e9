/* What the timed programs have in common: medians, and a share of the processor that others do not
 * disturb where the system allows it. */
#ifndef STERNA_BENCH_TIMING_H
#define STERNA_BENCH_TIMING_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MPI_VERSION
/* MPI_Init, or MPI_THREAD_MULTIPLE if the environment has STERNA_BENCH_MULTIPLE. */
static inline void init_for_bench(int* argc, char*** argv) {
  int level = 0;
  const int wanted = getenv("STERNA_BENCH_MULTIPLE") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(argc, argv, wanted, &level);
  if (level < wanted) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

/* The same for a program whose arguments are BATCHES BYTES...: how many batches; the job ends where
 * that is not what they are. */
static inline int init_for_batches(int* argc, char*** argv, const char* name) {
  init_for_bench(argc, argv);
  const int batches = *argc > 1 ? atoi((*argv)[1]) : 0;
  if (*argc < 3 || batches < 1) {
    fprintf(stderr, "usage: %s BATCHES BYTES...\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return batches;
}

/* Written, and to be freed; the job ends where there is none. */
static inline void* take_memory(size_t bytes) {
  void* const memory = malloc(bytes);
  if (memory == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memset(memory, 1, bytes); /* What was never written is all one page to who reads it. */
}

/* Of numbers as they are in the arguments; at least 1. */
static inline size_t largest(char** words, int count) {
  int found = 1;
  for (int i = 0; i < count; ++i) {
    found = atoi(words[i]) > found ? atoi(words[i]) : found;
  }
  return (size_t)found;
}
#endif

static int compare_times(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

/* Sorts `times`. */
static inline double median(double* times, int count) {
  qsort(times, (size_t)count, sizeof(double), compare_times);
  return times[count / 2];
}

/* Real-time priority for the calling kernel thread, if allowed. For two ranks on two processors and
 * less than a second: the system takes the processor back after that. Never with more ranks than
 * processors: a rank that spins would keep the others out. */
static inline void prefer_this_thread(void) {
  struct sched_param one = {.sched_priority = 1};
  (void)!sched_setscheduler(0, SCHED_FIFO, &one);
}

static inline void stop_preferring(void) {
  struct sched_param zero = {.sched_priority = 0};
  (void)!sched_setscheduler(0, SCHED_OTHER, &zero);
}

#endif
