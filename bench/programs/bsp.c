/* A bulk-synchronous program: each rank computes for so many microseconds, then all meet (allreduce
 * of 8 bytes), again and again. Prints "bsp MICROSECONDS" a step, "perfect": the same steps without
 * meeting, whose ranks share the processors just so, and "yielding": those with one sched_yield() a
 * step, which is all that the system takes of who lets another process have the processor; medians
 * over batches that take turns.
 *
 * usage: bsp BATCHES STEPS MICROSECONDS
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum ending { kNothing, kYield, kMeeting }; /* Of a step. */

static double run(int steps, long turns, enum ending ending) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    double mine = 1.0, sum = 0.0;
    work(turns);
    if (ending == kYield) sched_yield();
    if (ending == kMeeting) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double end = MPI_Wtime();
  /* From the first that begins to the last that ends: the same clock everywhere, on one host. */
  double mine[2] = {-begin, end}, most[2];
  MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (most[0] + most[1]) / steps * 1e6;
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int batches = argc == 4 ? atoi(argv[1]) : 0;
  const int steps = argc == 4 ? atoi(argv[2]) : 0;
  if (batches < 1 || steps < 1) {
    fprintf(stderr, "usage: bsp BATCHES STEPS MICROSECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  double per_us = 0; /* The others wait: with many ranks nobody else calibrates in peace. */
  if (rank == 0) per_us = calibrate_work();
  MPI_Bcast(&per_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const long turns = (long)(atof(argv[3]) * per_us);
  double* with = malloc(sizeof(double) * batches);
  double* without = malloc(sizeof(double) * batches);
  double* yielding = malloc(sizeof(double) * batches);
  if (with == NULL || without == NULL || yielding == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  (void)run(2, turns, kMeeting);
  for (int batch = 0; batch < batches; ++batch) {
    without[batch] = run(steps, turns, kNothing);
    yielding[batch] = run(steps, turns, kYield);
    with[batch] = run(steps, turns, kMeeting);
  }
  if (rank == 0) {
    printf("bsp %.3f\nperfect %.3f\n", median(with, batches), median(without, batches));
    printf("yielding %.3f\n", median(yielding, batches));
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
