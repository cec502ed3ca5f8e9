/* Collectives of more ranks than processors: prints "barrier MICROSECONDS" and "allreduce
 * MICROSECONDS" (8 bytes), as rank 0 sees them: the mean over as many as fit in the time given.
 *
 * usage: crowd MILLISECONDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void allreduce(void) {
  double mine = 1.0, sum = 0.0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double seconds_of(void (*operation)(void), int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) operation();
  return MPI_Wtime() - begin;
}

static void measure(const char* name, void (*operation)(void), double budget, int rank) {
  double seconds = seconds_of(operation, 3); /* Also warms up. */
  int count = (int)(budget / (seconds / 3));
  if (count < 3) count = 3;
  MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  seconds = seconds_of(operation, count);
  if (rank == 0) printf("%s %.3f\n", name, seconds / count * 1e6);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2 || atoi(argv[1]) < 1) {
    fprintf(stderr, "usage: crowd MILLISECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  measure("barrier", barrier, atoi(argv[1]) / 1e3, rank);
  measure("allreduce", allreduce, atoi(argv[1]) / 1e3, rank);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
