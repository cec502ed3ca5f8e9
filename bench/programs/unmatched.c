/* Messages that are there before their receives: prints "probe.BYTES US", to and fro, each looked
 * for by MPI_Probe before it is received, one way; and "burst.BYTES US", so many messages at once
 * that are received from the last to the first, for each of them. Medians of many short batches.
 *
 * usage: unmatched BATCHES BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

#define BURST 64

static char *out, *in;

static void by_probe(int rank, int bytes) {
  MPI_Status status;
  int count = 0;
  if (rank == 0) MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  MPI_Probe(1 - rank, 1, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_CHAR, &count);
  MPI_Recv(in, count, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

static void by_burst(int rank, int bytes) {
  MPI_Request requests[BURST];
  if (rank == 0) {
    for (int i = 0; i < BURST; ++i) {
      MPI_Isend(out, bytes, MPI_CHAR, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, BURST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    for (int i = BURST; i-- != 0;) {
      MPI_Recv(in, bytes, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(NULL, 0, MPI_CHAR, 0, BURST, MPI_COMM_WORLD);
  }
}

static const struct {
  const char* name;
  void (*pass)(int rank, int bytes);
  int count;    /* Of a batch. */
  int messages; /* Of each of those. */
} kKinds[] = {{"probe", by_probe, 50, 2}, {"burst", by_burst, 3, BURST}};

static void measure(int kind, int rank, int bytes, double* times, int batches) {
  for (int batch = -1; batch < batches; ++batch) { /* The first one warms up. */
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < kKinds[kind].count; ++i) kKinds[kind].pass(rank, bytes);
    const double us = (MPI_Wtime() - begin) * 1e6;
    if (batch >= 0) times[batch] = us / kKinds[kind].count / kKinds[kind].messages;
  }
  if (rank == 0) printf("%s.%d %.4f\n", kKinds[kind].name, bytes, median(times, batches));
}

int main(int argc, char** argv) {
  int rank = 0;
  const int batches = init_for_batches(&argc, &argv, "unmatched");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = take_memory(largest(argv + 2, argc - 2));
  in = take_memory(largest(argv + 2, argc - 2));
  double* times = take_memory(sizeof(double) * (size_t)batches);
  for (int i = 2; i < argc; ++i) {
    for (int kind = 0; kind < 2; ++kind) measure(kind, rank, atoi(argv[i]), times, batches);
  }
  fflush(stdout);
  free(times);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
