/* Waiting (paper 004, 3.3): prints "block MICROSECONDS" and "poll MICROSECONDS", one way of 8 bytes,
 * if both ranks wait in MPI_Recv, or test in a loop; and for answers that take 0 to 300 us, mixed,
 * "mixed": what a wait costs, which is how much later than the answer it ends, and the time of a
 * processor that it takes.
 *
 * usage: waits BATCHES
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "work.h"

enum { kExchanges = 100 };

static int rank;

static void receive(int* word, int polls) {
  if (!polls) {
    MPI_Recv(word, 2, MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Request request;
  MPI_Irecv(word, 2, MPI_INT, !rank, 1, MPI_COMM_WORLD, &request);
  for (int is_done = 0; !is_done;) MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
}

static double exchange(int polls) {
  int word[2] = {0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < kExchanges; ++i) {
    if (rank == 0) MPI_Send(word, 2, MPI_INT, 1, 1, MPI_COMM_WORLD);
    receive(word, polls);
    if (rank == 1) MPI_Send(word, 2, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / (2 * kExchanges) * 1e6;
}

static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

/* Rank 1 answers after a computation; rank 0 waits. The mean of both costs. */
static double mixed(double per_us) {
  static const int delays[] = {0, 0, 0, 2, 2, 5, 10, 20, 50, 300};
  enum { kDelays = sizeof delays / sizeof *delays };
  double late = 0, begin_cpu;
  MPI_Barrier(MPI_COMM_WORLD);
  begin_cpu = cpu_us();
  for (int i = 0; i < kDelays * 10; ++i) {
    double times[1] = {0};
    int word = 0;
    if (rank == 0) {
      MPI_Send(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
      MPI_Recv(times, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      late += (MPI_Wtime() - times[0]) * 1e6;
    } else {
      MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      work((long)(delays[i % kDelays] * per_us));
      times[0] = MPI_Wtime();
      MPI_Send(times, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
    }
  }
  return (late + cpu_us() - begin_cpu) / (kDelays * 10);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int batches = argc == 2 ? atoi(argv[1]) : 0;
  if (batches < 1) {
    fprintf(stderr, "usage: waits BATCHES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const double per_us = calibrate_work();
  double* times[3];
  for (int i = 0; i < 3; ++i) times[i] = malloc(sizeof(double) * batches);
  if (times[2] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int batch = 0; batch < batches; ++batch) {
    times[0][batch] = exchange(0);
    times[1][batch] = exchange(1);
    times[2][batch] = mixed(per_us);
  }
  if (rank == 0) {
    printf("block %.4f\npoll %.4f\nmixed %.4f\n", median(times[0], batches),
           median(times[1], batches), median(times[2], batches));
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
