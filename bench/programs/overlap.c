/* A large message beside a computation: prints, for each size, "total.BYTES" (both), "message.BYTES"
 * and "work.BYTES" (each alone), medians in microseconds, and "cpu.BYTES": the processor time of
 * both ranks for a message alone, a mean. That holds what they spend on waiting, so it says what the
 * copying costs only where who waits sleeps at once.
 *
 * usage: overlap sender|receiver MICROSECONDS BATCHES BYTES...
 *
 * The rank that computes starts its send or receive, computes, and waits for it and for an empty
 * answer of the other, which says that the other has done its part, too. The other rank waits.
 *
 * Messages alone follow each other, as do messages beside computations: each kind is measured with
 * what it leaves in the caches itself. They take turns, so that what else the machine does meets both.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

#define BLOCK 10 /* Exchanges of one kind, one after the other. */

static char* buffer;
static int rank;
static int sender;      /* Rank 0 computes, and is the sender or the receiver. */
static double cpu_used; /* Of exchanges without computation, this rank's. */

static double processor_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* They begin together, as nearly as a message lets them: rank 0 when the other has answered, which may
 * have fallen asleep while rank 0 computed alone. */
static void meet(void) {
  char token = 0;
  if (rank == 0) MPI_Send(&token, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  MPI_Recv(&token, 1, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(&token, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

/* On both ranks: microseconds on rank 0. */
static double exchange(int bytes, long turns) {
  MPI_Request request;
  meet();
  const double cpu_before = turns == 0 ? processor_time() : 0;
  const double begin = MPI_Wtime();
  if (rank == sender) {
    MPI_Isend(buffer, bytes, MPI_CHAR, !rank, 2, MPI_COMM_WORLD, &request);
  } else {
    MPI_Irecv(buffer, bytes, MPI_CHAR, !rank, 2, MPI_COMM_WORLD, &request);
  }
  if (rank == 0 && turns != 0) work(turns);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) {
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(NULL, 0, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
  }
  const double end = MPI_Wtime();
  if (turns == 0) cpu_used += processor_time() - cpu_before;
  return (end - begin) * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 5 || atoi(argv[3]) < 1) {
    fprintf(stderr, "usage: overlap sender|receiver MICROSECONDS BATCHES BYTES...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  sender = strcmp(argv[1], "sender") == 0 ? 0 : 1;
  const int batches = atoi(argv[3]);
  int bytes_max = 1;
  for (int i = 4; i < argc; ++i) {
    if (atoi(argv[i]) > bytes_max) bytes_max = atoi(argv[i]);
  }
  buffer = malloc(bytes_max);
  double* times[3];
  for (int i = 0; i < 3; ++i) times[i] = malloc(sizeof(double) * (batches + BLOCK));
  if (buffer == NULL || times[2] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(buffer, 1, bytes_max);
  const long turns = (long)(atof(argv[2]) * calibrate_work());
  for (int i = 4; i < argc; ++i) {
    const int bytes = atoi(argv[i]);
    for (int done = -BLOCK; done < batches; done += BLOCK) {
      if (done == 0) cpu_used = 0;
      const int from = done < 0 ? 0 : done; /* The first block warms up. */
      const int count = batches - done < BLOCK ? batches - done : BLOCK;
      for (int i = from; i < from + count; ++i) {
        times[0][i] = exchange(bytes, turns);
        meet();
        const double begin = MPI_Wtime();
        if (rank == 0) work(turns);
        times[2][i] = (MPI_Wtime() - begin) * 1e6;
      }
      for (int i = from; i < from + count; ++i) times[1][i] = exchange(bytes, 0);
    }
    double cpu_of_both = 0;
    MPI_Reduce(&cpu_used, &cpu_of_both, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("total.%d %.3f\nmessage.%d %.3f\nwork.%d %.3f\ncpu.%d %.3f\n", bytes,
             median(times[0], batches), bytes, median(times[1], batches), bytes,
             median(times[2], batches), bytes, cpu_of_both / batches);
    }
  }
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
