/* Every rank counts with the others until a file exists; one of them moves itself once, as soon as
 * another file exists. For moves that nobody has prepared. Prints "rank R counted right" once a
 * rank.
 *
 * usage: cluster_going END GO RANK NODE
 */
#include <sterna/migrate.h>
#include <unistd.h>

#include "../mpi/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc < 5) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int who = atoi(argv[3]), node = atoi(argv[4]);
  int more = 1, has_gone = 0;
  for (long rounds = 0; more; ++rounds) {
    long mine = rounds * world_size + world_rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == rounds * world_size * world_size + (long)world_size * (world_size - 1) / 2);
    if (world_rank == who && !has_gone && access(argv[2], F_OK) == 0) {
      has_gone = 1;
      (void)sterna_migrate_to((uint32_t)node); /* It may be refused. */
    }
    more = access(argv[1], F_OK) != 0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    usleep(200);
  }
  if (error_count == 0) {
    printf("rank %d counted right\n", world_rank);
  }
  return end();
}
