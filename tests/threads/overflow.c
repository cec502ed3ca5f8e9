/* Recurses without end, or to the depth given: rank 1 of 2 does. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long limit;

static long recurse(long depth) {
  volatile char frame[1024];
  frame[0] = (char)depth;
  return depth == limit ? frame[0] : recurse(depth + 1) + frame[0];
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  limit = argc > 1 ? atol(argv[1]) : 1L << 40;
  if (rank == 1) {
    (void)recurse(0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
