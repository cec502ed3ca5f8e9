/* Intercommunicators: made, duplicated, merged, split by color and by host, and made of groups. */
#include <unistd.h>

#include "check.h"

static int total(MPI_Comm c) {
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, c);
  return all;
}

/* By color on both sides, in reversed order; one color is on one side only, one rank takes none. */
static void test_inter_split(MPI_Comm inter, int side) {
  int rank, size, remote, sum = 0, value = 1 + world_rank, expected = 0, count = 0, color, flag,
                          from;
  MPI_Comm part, again;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_split(inter, rank == 0 ? 3 : (side == 0 ? 8 : 9), -world_rank, &part);
  CHECK((part == MPI_COMM_NULL) == (rank != 0));
  if (part != MPI_COMM_NULL) {
    MPI_Comm_free(&part);
  }
  color = world_rank < 2 ? 0 : (world_rank / 2) % 2;
  MPI_Comm_split(inter, world_rank == 4 ? MPI_UNDEFINED : color, -world_rank, &part);
  for (int i = 0; i < world_size; ++i) {
    const int is_same = i != 4 && (i < 2 ? 0 : (i / 2) % 2) == color;
    if (is_same && i % 2 != side) {
      expected += 1 + i;
      ++count;
    }
  }
  CHECK((part == MPI_COMM_NULL) == (world_rank == 4 || count == 0));
  if (part == MPI_COMM_NULL) {
    return;
  }
  MPI_Comm_test_inter(part, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(part, &remote);
  CHECK(remote == count);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
  CHECK(sum == expected);
  MPI_Comm_dup(part, &again);
  MPI_Comm_rank(again, &rank);
  MPI_Comm_size(again, &size);
  if (size == remote) {
    MPI_Sendrecv(&world_rank, 1, MPI_INT, rank, 4, &from, 1, MPI_INT, rank, 4, again,
                 MPI_STATUS_IGNORE);
    CHECK(from == (side == 0 ? world_rank + 1 : world_rank - 1));
  }
  MPI_Comm_free(&again);
  MPI_Comm_free(&part);
}

/* By host, where that makes sense of both sides: all of them share memory here. */
static void test_inter_split_type(MPI_Comm inter, int side) {
  int flag, remote, size, expected = 0, sum = 0, value = 1 + world_rank;
  MPI_Comm part;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, &part);
  CHECK(part != MPI_COMM_NULL);
  MPI_Comm_test_inter(part, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(part, &size);
  CHECK(size == remote);
  for (int i = 1 - side; i < world_size; i += 2) {
    expected += 1 + i;
  }
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
  CHECK(sum == expected);
  MPI_Comm_free(&part);
  MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part);
  CHECK(part == MPI_COMM_NULL);
}

/* The upper half of each side, last first; with nobody of one side there is none. */
static void test_inter_create(MPI_Comm inter) {
  enum { kMax = 64 };
  int members[kMax], size, rank, remote, made_rank, made_size, made_remote, flag;
  MPI_Group own, part, other;
  MPI_Comm made;
  MPI_Comm_size(inter, &size);
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &remote);
  const int first = size / 2, count = size - first < kMax ? size - first : kMax;
  for (int i = 0; i < count; ++i) {
    members[i] = size - 1 - i;
  }
  MPI_Comm_group(inter, &own);
  MPI_Group_incl(own, count, members, &part);
  MPI_Comm_create(inter, part, &made);
  CHECK((made == MPI_COMM_NULL) == (rank < size - count));
  if (made != MPI_COMM_NULL) {
    MPI_Comm_test_inter(made, &flag);
    MPI_Comm_rank(made, &made_rank);
    MPI_Comm_size(made, &made_size);
    MPI_Comm_remote_size(made, &made_remote);
    CHECK(flag && made_rank == size - 1 - rank && made_size == count);
    CHECK(made_remote == remote - remote / 2);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
  }
  MPI_Comm_create(inter, world_rank % 2 == 0 ? own : MPI_GROUP_EMPTY, &made);
  CHECK(made == MPI_COMM_NULL);
  /* The other side's ranks are none of a group of this side. */
  MPI_Comm_remote_group(inter, &other);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  CHECK(MPI_Comm_create(inter, other, &made) == MPI_ERR_GROUP);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
  MPI_Group_free(&other);
  MPI_Group_free(&part);
  MPI_Group_free(&own);
}

/* Splitting it while another collective of it is under way, which some have not begun. */
static void test_inter_split_beside(MPI_Comm inter) {
  MPI_Comm fresh, part; /* Whose collectives have the first numbers. */
  MPI_Request q;
  int remote, size;
  MPI_Comm_dup(inter, &fresh);
  if (world_rank >= 2) {
    usleep(30000); /* So that the others are there: what is true does not depend on it. */
  }
  MPI_Ibarrier(fresh, &q);
  MPI_Comm_split(fresh, 0, world_rank, &part);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_remote_size(part, &size);
  CHECK(size == remote);
  MPI_Comm_free(&part);
  MPI_Comm_free(&fresh);
}

static void test_inter(void) {
  if (world_size < 2) {
    return;
  }
  MPI_Comm half, inter, merged, dup;
  int side = world_rank % 2, remote, value, flag, sum = -1;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 12, &inter);
  MPI_Comm_test_inter(inter, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(inter, &remote);
  CHECK(remote == (side ? (world_size + 1) / 2 : world_size / 2));
  value = side ? 100 : 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
  CHECK(sum == remote * (side ? 1 : 100));
  MPI_Barrier(inter);
  MPI_Comm_dup(inter, &dup);
  value = side ? -1 : 42;
  int root = side ? 0 : (world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
  MPI_Bcast(&value, 1, MPI_INT, root, dup);
  CHECK(value == 42);
  MPI_Comm_free(&dup);
  MPI_Intercomm_merge(inter, side, &merged);
  CHECK(total(merged) == world_size);
  MPI_Comm_rank(merged, &value);
  CHECK(value == (side ? (world_size + 1) / 2 : 0) + world_rank / 2);
  MPI_Comm_free(&merged);
  test_inter_split(inter, side);
  test_inter_split_type(inter, side);
  test_inter_create(inter);
  test_inter_split_beside(inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  test_inter();
  return end();
}
