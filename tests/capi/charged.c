/* Two mobile ranks that share a worker: one computes for a millisecond now and then, between them
 * go thousands of short messages, which are not timed one by one. Each is charged with its own
 * time. */
#include <mpi.h>

#include "expect.h"
#include "sterna/balance.h"
#include "sterna/sterna.h"

enum { kRounds = 150, kMessages = 2000 };

static double compute(double seconds) {
  const double begin = MPI_Wtime();
  double now = begin;
  while (now - begin < seconds) {
    now = MPI_Wtime();
  }
  return now - begin;
}

static void exchange(int rank) {
  char byte = 0;
  for (int i = 0; i < kMessages; ++i) {
    if (rank == 0) {
      MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
}

int main(int argc, char** argv) {
  sterna_load before = {sizeof before, 0, 0}, after = {sizeof after, 0, 0};
  int rank = 0;
  double computed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  exchange(rank);
  EXPECT(sterna_load_query(&before) == STERNA_SUCCESS);
  const double begin = MPI_Wtime();
  for (int i = 0; i < kRounds; ++i) {
    if (rank == 0) {
      computed += compute(1e-3);
    }
    exchange(rank);
  }
  const double all = MPI_Wtime() - begin;
  EXPECT(sterna_load_query(&after) == STERNA_SUCCESS);
  const double charged = (double)(after.processor_ns - before.processor_ns) * 1e-9;
  /* No threshold of time: whatever the machine does meanwhile, these are parts of one another. */
  if (rank == 0) {
    EXPECT(charged > 0.9 * computed && charged < 1.1 * all);
  }
  MPI_Bcast(&computed, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    EXPECT(charged < all - computed + 0.1 * all);
  }
  MPI_Finalize();
  if (rank == 0) {
    puts("No Errors");
  }
  return 0;
}
