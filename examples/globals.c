/* Global variables belong to a rank, also where ranks share a process. */
#include <mpi.h>
#include <stdio.h>

static int counter = 1000;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 100; ++round) {
    counter += rank;
    MPI_Barrier(MPI_COMM_WORLD); /* All others add to theirs. */
  }
  wrong = counter != 1000 + 100 * rank;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s\n", wrong == 0 ? "every rank has its own counter" : "ranks share a counter!");
  }
  MPI_Finalize();
  return wrong != 0;
}
