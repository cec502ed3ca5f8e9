/* Messages one behind the other from rank 0 to rank 1: prints "bandwidth.BYTES MB_PER_SECOND" and
 * "rate.BYTES MILLIONS_PER_SECOND", the medians of many windows. A window is so many sends that are
 * started at once, and an empty answer when all have come.
 *
 * usage: stream BATCHES WINDOW BYTES...
 * With STERNA_BENCH_MULTIPLE in its environment it asks for MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

#define WINDOW_MAX 256

static char* buffer;
static MPI_Request requests[WINDOW_MAX];

static void move_window(int rank, int bytes, int window) {
  for (int i = 0; i < window; ++i) {
    if (rank == 0) {
      MPI_Isend(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
    } else {
      MPI_Irecv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) {
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  init_for_bench(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int batches = argc > 1 ? atoi(argv[1]) : 0;
  const int window = argc > 2 ? atoi(argv[2]) : 0;
  if (argc < 4 || batches < 1 || window < 1 || window > WINDOW_MAX) {
    fprintf(stderr, "usage: stream BATCHES WINDOW BYTES...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  buffer = take_memory(largest(argv + 3, argc - 3));
  double* times = take_memory(sizeof(double) * (size_t)batches);
  prefer_this_thread();
  for (int i = 3; i < argc && rank < 2; ++i) {
    const int bytes = atoi(argv[i]);
    move_window(rank, bytes, window);
    for (int batch = 0; batch < batches; ++batch) {
      const double begin = MPI_Wtime();
      move_window(rank, bytes, window);
      times[batch] = (MPI_Wtime() - begin) / window * 1e6;
    }
    if (rank == 0) {
      const double us = median(times, batches);
      printf("bandwidth.%d %.4f\nrate.%d %.4f\n", bytes, bytes / us, bytes, 1 / us);
    }
  }
  fflush(stdout);
  stop_preferring();
  MPI_Barrier(MPI_COMM_WORLD);
  free(times);
  free(buffer);
  MPI_Finalize();
  return 0;
}
