/* A rank that has no memory while groups meet to make an intercommunicator: nobody waits for it. Its
 * malloc refuses one block, known by its length, as the groups are of unequal sizes that nothing
 * else has. Processes only. */
#include <stddef.h>

#include "../check.h"

enum { kLow = 9, kHigh = 11, kAll = kLow + kHigh };

extern void* __libc_malloc(size_t bytes);

static size_t refused_bytes; /* 0: all are given. */
static int refusals;

void* malloc(size_t bytes) {
  if (bytes == refused_bytes && bytes != 0) {
    refused_bytes = 0;
    ++refusals;
    return NULL;
  }
  return __libc_malloc(bytes);
}

/* Rank `who` of the job has no memory for a list of `members`. */
static void meet(MPI_Comm half, int who, int members) {
  const int is_low = world_rank < kLow, is_leader = who == 0 || who == kLow;
  MPI_Comm inter = MPI_COMM_NULL;
  int class = -1;
  refusals = 0;
  refused_bytes = world_rank == who ? members * sizeof(unsigned) : 0;
  const int error =
      MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_low ? kLow : 0, 12, &inter);
  refused_bytes = 0;
  MPI_Error_class(error, &class);
  CHECK(refusals == (world_rank == who));
  CHECK((error == MPI_SUCCESS) == (inter != MPI_COMM_NULL));
  if (world_rank == who) {
    CHECK(class == MPI_ERR_NO_MEM);
  } else if (is_leader) { /* All need what the leaders exchange. */
    CHECK(class == MPI_ERR_OTHER);
  } else if (who == kAll || (who < kLow) != is_low) {
    CHECK(class == MPI_SUCCESS);
  }
  if (inter != MPI_COMM_NULL) {
    MPI_Comm_free(&inter);
  }
}

int main(int argc, char** argv) {
  MPI_Comm half;
  begin(&argc, &argv);
  CHECK(world_size == kAll);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank < kLow, world_rank, &half);
  for (int round = 0; round < 2; ++round) {
    meet(half, 0, kLow);         /* A leader, for its own group. */
    meet(half, 0, kHigh);        /* For the other one. */
    meet(half, kLow, kLow);      /* The other leader. */
    meet(half, kLow, kHigh);
    meet(half, kLow + 4, kLow);  /* One that passes on what it gets. */
    meet(half, kAll - 1, kLow);  /* One that does not. */
    meet(half, kAll, 0);         /* Nobody. */
  }
  MPI_Comm_free(&half);
  return end();
}
