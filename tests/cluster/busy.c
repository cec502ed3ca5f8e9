/* Rank 0 computes without a call into MPI until the file named exists, then
 * meets the others; the others wait for it. For orders to move that meet a rank which cannot go
 * yet.
 *
 * usage: cluster_busy FILE       (rank 0 goes on when FILE exists)
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank = 0, size = 0, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0) {
    while (access(argv[1], F_OK) != 0) {
      sched_yield();
    }
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int is_right = sum == size * (size - 1) / 2;
  if (rank == 0) {
    puts(is_right ? "No Errors" : "wrong sum");
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
