/* Context numbers, of which each rank has 2^30 / ranks: duplicates of MPI_COMM_SELF that are freed at
 * once take none, and where rank 0 has none left, calls that would need one fail for all. */
#include "../check.h"

/* How many. When one is freed it is not the one that was made last. */
static int take_all(MPI_Comm* last) {
  MPI_Comm next;
  int taken = 1;
  MPI_Comm_dup(MPI_COMM_SELF, last);
  for (; MPI_Comm_dup(MPI_COMM_SELF, &next) == MPI_SUCCESS; ++taken) {
    MPI_Comm_free(last);
    *last = next;
  }
  return taken;
}

static void test_self(int count) {
  int failed = 0;
  for (int i = 0; i < count && !failed; ++i) {
    MPI_Comm comm;
    failed = MPI_Comm_dup(MPI_COMM_SELF, &comm) != MPI_SUCCESS;
    if (!failed) {
      MPI_Comm_free(&comm);
    }
  }
  CHECK(!failed);
}

/* Of sides with odd and even ranks; that of rank 0 has another leader. */
static MPI_Comm meet_halves(MPI_Comm half) {
  int size, leader = world_rank % 2 == 0 ? 1 : 0;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_size(half, &size);
  CHECK(size > 1);
  MPI_Intercomm_create(half, leader, MPI_COMM_WORLD, world_rank % 2 == 0 ? 1 : 2, 4, &inter);
  return inter;
}

static void test_none_left(MPI_Comm half, MPI_Comm inter) {
  MPI_Comm made = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  int sum = 0, one = 1;
  FAILS(MPI_ERR_OTHER, MPI_Comm_dup(MPI_COMM_WORLD, &made));
  FAILS(MPI_ERR_OTHER, MPI_Comm_dup(inter, &made));
  /* Rank 0 leads one side: both groups hear of it. */
  FAILS(MPI_ERR_OTHER, MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 5, &made));
  CHECK(made == MPI_COMM_NULL);
  FAILS(MPI_ERR_OTHER, MPI_Intercomm_merge(inter, world_rank % 2, &merged));
  CHECK(merged == MPI_COMM_NULL);
  /* The leader of the other side has one. */
  CHECK(MPI_Intercomm_merge(inter, world_rank % 2 == 0, &merged) == MPI_SUCCESS);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
  CHECK(sum == world_size);
  MPI_Comm_free(&merged);
}

int main(int argc, char** argv) {
  MPI_Comm half, inter, made, last = MPI_COMM_NULL;
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
  inter = meet_halves(half);
  const int share = (1 << 30) / world_size;
  if (world_rank == 0) {
    test_self(share + 10);
    const int taken = take_all(&last);
    CHECK(taken > 0 && taken < share);
    FAILS(MPI_ERR_OTHER, MPI_Comm_dup(MPI_COMM_SELF, &made));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  test_none_left(half, inter);
  if (last != MPI_COMM_NULL) {
    MPI_Comm_free(&last);
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return end();
}
