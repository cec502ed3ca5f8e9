/* Ranks 0 and 1 send each other as much at the same time, as the halves of a domain do: prints
 * "waitall.BYTES US" (receive and send started, then both waited for), "sendrecv.BYTES US", and
 * "receive.BYTES US" (the send started, then received, then the send waited for), for one exchange,
 * the medians of many short batches.
 *
 * usage: exchange BATCHES BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

static char *out, *in;

static void by_waitall(int peer, int bytes) {
  MPI_Request requests[2];
  MPI_Irecv(in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void by_sendrecv(int peer, int bytes) {
  MPI_Sendrecv(out, bytes, MPI_CHAR, peer, 1, in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void by_receive(int peer, int bytes) {
  MPI_Request request;
  MPI_Isend(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct {
  const char* name;
  void (*exchange)(int peer, int bytes);
} kWays[] = {{"waitall", by_waitall}, {"sendrecv", by_sendrecv}, {"receive", by_receive}};

/* Both begin together, as nearly as a message lets them. */
static void meet(int peer) {
  by_sendrecv(peer, 0);
}

static void measure(int way, int rank, int bytes, double* times, int batches) {
  const int count = bytes <= 4096 ? 100 : bytes <= 65536 ? 25 : 5;
  for (int batch = -1; batch < batches; ++batch) { /* The first one warms up. */
    meet(1 - rank);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) kWays[way].exchange(1 - rank, bytes);
    if (batch >= 0) times[batch] = (MPI_Wtime() - begin) / count * 1e6;
  }
  if (rank == 0) printf("%s.%d %.4f\n", kWays[way].name, bytes, median(times, batches));
}

int main(int argc, char** argv) {
  int rank = 0;
  const int batches = init_for_batches(&argc, &argv, "exchange");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  out = take_memory(largest(argv + 2, argc - 2));
  in = take_memory(largest(argv + 2, argc - 2));
  double* times = take_memory(sizeof(double) * (size_t)batches);
  for (int i = 2; i < argc && rank < 2; ++i) {
    for (int way = 0; way < 3; ++way) measure(way, rank, atoi(argv[i]), times, batches);
  }
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  free(times);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
