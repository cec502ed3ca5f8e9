/* Rank 0 ends at once after MPI_Finalize, the others when the file of the first argument is there.
 * Before that all wait for the file of the second. */
#include <unistd.h>

#include "../mpi/check.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int is_there = 0; argc > 2 && access(argv[2], F_OK) != 0;) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    usleep(1000);
  }
  const int result = end();
  while (world_rank != 0 && argc > 1 && access(argv[1], F_OK) != 0) {
    usleep(1000);
  }
  return result;
}
