/* Ping-pong between ranks 0 and 1: prints "latency.BYTES MICROSECONDS" (one way), the median of many
 * short batches.
 *
 * usage: latency BATCHES BYTES...
 * With STERNA_BENCH_MULTIPLE in its environment it asks for MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

static char* buffer;

static void exchange(int rank, int bytes, int count) {
  for (int i = 0; i < count; ++i) {
    if (rank == 0) {
      MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  const int batches = init_for_batches(&argc, &argv, "latency");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  buffer = take_memory(largest(argv + 2, argc - 2));
  double* times = take_memory(sizeof(double) * (size_t)batches);
  prefer_this_thread();
  for (int i = 2; i < argc && rank < 2; ++i) {
    const int bytes = atoi(argv[i]);
    const int count = bytes <= 4096 ? 100 : bytes <= 65536 ? 25 : 5;
    exchange(rank, bytes, count);
    for (int batch = 0; batch < batches; ++batch) {
      const double begin = MPI_Wtime();
      exchange(rank, bytes, count);
      times[batch] = (MPI_Wtime() - begin) / (2 * count) * 1e6;
    }
    if (rank == 0) printf("latency.%d %.4f\n", bytes, median(times, batches));
  }
  fflush(stdout);
  stop_preferring();
  MPI_Barrier(MPI_COMM_WORLD);
  free(times);
  free(buffer);
  MPI_Finalize();
  return 0;
}
