/* Prints sums, products and concatenations of communicators of all sizes from 2 on, as bits: they
 * are the same wherever ranks are, in processes, on one node, on several, and while they move. */
#include "../mpi/check.h"

enum { kCount = 3 };

static void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    ((long*)inout)[i] = ((long*)in)[i] * 31 + ((long*)inout)[i] * 7;
  }
}

static unsigned long bits_of(double value) {
  unsigned long bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void print_results(MPI_Comm comm) {
  double mine[kCount], sums[kCount], wanted[kCount];
  long value, joined = 0;
  int rank, size;
  MPI_Op op;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < kCount; ++i) {
    mine[i] = 1e9 / (rank + 3 + i) * (rank % 2 ? 1 : -1.0000001);
  }
  MPI_Allreduce(mine, sums, kCount, MPI_DOUBLE, MPI_SUM, comm);
  memcpy(wanted, sums, sizeof wanted);
  MPI_Bcast(wanted, kCount, MPI_DOUBLE, size - 1, comm);
  CHECK(memcmp(wanted, sums, sizeof wanted) == 0);
  for (int i = 0; i < kCount; ++i) {
    wanted[i] = mine[i] * 1e-7;
  }
  MPI_Allreduce(MPI_IN_PLACE, wanted, kCount, MPI_DOUBLE, MPI_PROD, comm);
  MPI_Op_create(concatenate, 0, &op);
  value = rank + 1;
  MPI_Allreduce(&value, &joined, 1, MPI_LONG, op, comm);
  MPI_Op_free(&op);
  MPI_Barrier(comm);
  if (rank == 0 && world_rank == 0) {
    printf("%d: %lx %lx %lx %lx %lx\n", size, bits_of(sums[0]), bits_of(sums[kCount - 1]),
           bits_of(wanted[0]), bits_of(wanted[kCount - 1]), (unsigned long)joined);
  }
}

/* Who comes out of a barrier knows that all came in. */
static void check_barriers(void) {
  for (int round = 0; round < 20; ++round) {
    int late = round % world_size, came = 0;
    MPI_Request q = MPI_REQUEST_NULL;
    if (world_rank != late) {
      MPI_Irecv(&came, 1, MPI_INT, late, 5, MPI_COMM_WORLD, &q);
    }
    for (int i = 0; world_rank == late && i < world_size; ++i) {
      if (i != late) {
        MPI_Send(&world_size, 1, MPI_INT, i, 5, MPI_COMM_WORLD);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* It was sent before: a short message, so it is on its way at least. */
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    CHECK(world_rank == late || came == world_size);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int size = 2; size <= world_size; ++size) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < size, 0, &comm);
    print_results(comm);
    MPI_Comm_free(&comm);
  }
  check_barriers();
  return end();
}
