/* An iterative MPI program whose ranks have unequal work, and which says when moving them suits it.
 *
 *     sterna run -n 8 --nodes 2 --balance greedy ./balance_point
 *
 * The heavy ranks begin on one node; the report of moves at the end is not 0 then. As processes
 * (mpiexec) the same program runs without moves. */
#include <mpi.h>
#include <sterna/balance.h>
#include <sterna/sterna.h>
#include <stdio.h>

enum { kSteps = 12 };

/* Work that the compiler cannot drop. */
static double compute(int amount) {
  double sum = 0;
  for (int i = 1; i <= amount * 200000; ++i) {
    sum += 1.0 / (double)i;
  }
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double sum = 0, total = 0;
  for (int step = 0; step < kSteps; ++step) {
    sum += compute(rank < size / 2 ? 9 : 1); /* The first half of the ranks is slow. */
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sterna_balance_point();
  }
  sterna_load load = {sizeof load, 0, 0};
  unsigned long moves = sterna_load_query(&load) == STERNA_SUCCESS ? (unsigned long)load.moves : 0;
  unsigned long all_moves = 0;
  MPI_Reduce(&moves, &all_moves, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d steps of %d ranks on %u nodes, %lu moves, total %.3f\n", kSteps, size,
           sterna_node_count(), all_moves, total);
  }
  MPI_Finalize();
  return total > 0 ? 0 : 1;
}
