/* Rank 1 waits in MPI_Recv, with others of its node ready to run, until a file is there. Argument: its
 * path. Path + ".waits" is made when rank 1 is about to wait. */
#include <unistd.h>

#include "../mpi/check.h"

enum { kTag = 3, kWarmUp = 200 };

static void play(int partner, int is_first) {
  for (int i = 0; i < kWarmUp; ++i) {
    int value = -1;
    if (is_first) MPI_Send(&i, 1, MPI_INT, partner, kTag, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == i);
    if (!is_first) MPI_Send(&i, 1, MPI_INT, partner, kTag, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  char waits[4096];
  snprintf(waits, sizeof waits, "%s.waits", argc > 1 ? argv[1] : "go_on");
  if (world_rank < 2) {
    play(1 - world_rank, world_rank == 0);
  }
  if (world_rank == 1) {
    int value = -1;
    fclose(fopen(waits, "w"));
    MPI_Recv(&value, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == 77);
  } else {
    /* Ready whenever somebody else leaves the processor. */
    const int value = 77;
    int flag = 0;
    while (access(argv[1], F_OK) != 0) {
      MPI_Iprobe(MPI_ANY_SOURCE, kTag + 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    if (world_rank == 0) MPI_Send(&value, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD);
  }
  if (world_rank < 2) {
    play(1 - world_rank, world_rank == 0);
  }
  return end();
}
