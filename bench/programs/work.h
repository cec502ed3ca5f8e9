/* Computation of a known length for programs that compute beside messages: so many turns of a loop,
 * calibrated once. Fixed work, not a wait for a time: who takes the processor away meanwhile is
 * seen. */
#ifndef STERNA_BENCH_WORK_H
#define STERNA_BENCH_WORK_H

#include <mpi.h>

#include "timing.h"

static volatile double work_result;

static inline void work(long turns) {
  double x = 1.0;
  for (long i = 0; i < turns; ++i) {
    x = x * 0.999999 + 1e-7;
  }
  work_result = x;
}

/* Turns that take a microsecond on a processor of one's own: the best of many short samples, since
 * whatever disturbs makes them longer. */
static inline double calibrate_work(void) {
  double best = 1e9;
  for (int sample = 0; sample < 200; ++sample) {
    const double begin = MPI_Wtime();
    work(20000);
    const double seconds = MPI_Wtime() - begin;
    if (seconds < best) {
      best = seconds;
    }
  }
  return 20000 / (best * 1e6);
}

#endif
