/* Blocking collectives against non-blocking ones of the same arguments: the same bits, whatever way
 * each takes, for all sizes of communicators, with others under way, at every level of threads. */
#include <float.h>

#include "check.h"

enum { kCountMax = 9000, kGuard = 77 };

static double mine[kCountMax], sums[kCountMax + 1], wanted[kCountMax];
static const int counts[] = {1, 2, 3, 17, 130, 1000, kCountMax};

static unsigned state = 1;
static unsigned next_random(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

/* Sums of these differ in their last bits with every change of the order. */
static void fill(int round, int count) {
  state = (unsigned)(world_rank * 7919 + round * 104729 + 1);
  for (int i = 0; i < count; ++i) {
    mine[i] = (next_random() / 1e5 - 83.0) * (i % 3 == 0 ? 1e9 : 1e-3) + 1.0 / (1 + world_rank);
  }
}

static void test_allreduce(MPI_Comm comm, int round) {
  static const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
  for (int k = 0; k < 7; ++k) {
    MPI_Request q;
    const MPI_Op op = ops[(round + k) % 4];
    fill(round + k, counts[k]);
    sums[counts[k]] = kGuard;
    MPI_Iallreduce(mine, wanted, counts[k], MPI_DOUBLE, op, comm, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (k % 2 == 0) {
      MPI_Allreduce(mine, sums, counts[k], MPI_DOUBLE, op, comm);
    } else {
      memcpy(sums, mine, sizeof(double) * counts[k]);
      MPI_Allreduce(MPI_IN_PLACE, sums, counts[k], MPI_DOUBLE, op, comm);
    }
    CHECK(memcmp(sums, wanted, sizeof(double) * counts[k]) == 0);
    CHECK(sums[counts[k]] == kGuard);
  }
}

static void test_reduce(MPI_Comm comm, int round) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int k = 0; k < 7; ++k) {
    MPI_Request q;
    const int root = (round * 5 + k) % size;
    fill(round + k, counts[k]);
    sums[0] = kGuard;
    MPI_Ireduce(mine, wanted, counts[k], MPI_DOUBLE, MPI_SUM, root, comm, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (rank == root && k % 2 == 1) {
      memcpy(sums, mine, sizeof(double) * counts[k]);
      MPI_Reduce(MPI_IN_PLACE, sums, counts[k], MPI_DOUBLE, MPI_SUM, root, comm);
    } else {
      MPI_Reduce(mine, rank == root ? sums : NULL, counts[k], MPI_DOUBLE, MPI_SUM, root, comm);
    }
    if (rank == root) {
      CHECK(memcmp(sums, wanted, sizeof(double) * counts[k]) == 0);
    } else {
      CHECK(sums[0] == kGuard);
    }
  }
}

/* The program's own operator, and types that are not one run: never left out, never mixed up. */
static void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    ((long*)inout)[i] = ((long*)in)[i] * 31 + ((long*)inout)[i];
  }
}

static void test_odd_ones(MPI_Comm comm, int round) {
  int rank, size;
  long value, result = -1, expected = -1;
  struct {
    double value;
    int index;
  } pair, best;
  MPI_Request q;
  MPI_Op op;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Op_create(concatenate, 0, &op);
  value = rank + round;
  MPI_Iallreduce(&value, &expected, 1, MPI_LONG, op, comm, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Allreduce(&value, &result, 1, MPI_LONG, op, comm);
  CHECK(result == expected);
  MPI_Op_free(&op);
  pair.value = (rank * 7 + round) % size;
  pair.index = rank;
  MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  CHECK(best.value == size - 1 || size == 7 || size % 7 == 0);

  int cells[20], root = round % size;
  MPI_Datatype every_other;
  MPI_Type_vector(10, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  for (int i = 0; i < 20; ++i) {
    cells[i] = rank == root ? 100 * round + i : -1;
  }
  if (rank == root || rank % 2 == 0) {
    MPI_Bcast(cells, 1, every_other, root, comm);
    for (int i = 0; i < 20; ++i) {
      CHECK(cells[i] == (rank == root || i % 2 == 0 ? 100 * round + i : -1));
    }
  } else {
    MPI_Bcast(cells, 10, MPI_INT, root, comm);
    for (int i = 0; i < 20; ++i) {
      CHECK(cells[i] == (i < 10 ? 100 * round + 2 * i : -1));
    }
  }
  MPI_Type_free(&every_other);
}

/* Others under way: what each waits for goes on while it waits here. */
static void test_overlap(MPI_Comm comm, int round) {
  int rank, size, from = -1, token = round, sum = 0, one = 1;
  MPI_Request q[4];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Ibarrier(comm, &q[0]);
  MPI_Irecv(&from, 1, MPI_INT, (rank + size - 1) % size, 9, comm, &q[1]);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &q[2]);
  if (rank % 2 == 0) {
    MPI_Barrier(comm);
    MPI_Isend(&token, 1, MPI_INT, (rank + 1) % size, 9, comm, &q[3]);
  } else {
    MPI_Isend(&token, 1, MPI_INT, (rank + 1) % size, 9, comm, &q[3]);
    MPI_Barrier(comm);
  }
  MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
  CHECK(from == round && sum == size);
}

/* Each round needs that of before: who is let go too soon reads an old value. */
static void test_rounds(MPI_Comm comm) {
  int rank, size;
  long value = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (long i = 0; i < 3000; ++i) {
    value = i * size + rank;
    if (i % 3 == 0) {
      MPI_Barrier(comm);
    }
    MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, comm);
    CHECK(sum == i * size * size + (long)size * (size - 1) / 2);
    if (i % 7 == 0) {
      value = i;
      MPI_Bcast(&value, 1, MPI_LONG, (int)(i % size), comm);
      CHECK(value == i);
    }
  }
}

static void test_all(MPI_Comm comm) {
  for (int round = 0; round < 8; ++round) {
    test_allreduce(comm, round);
    test_reduce(comm, round);
    test_odd_ones(comm, round);
    test_overlap(comm, round);
  }
  test_rounds(comm);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Comm comm;
  if (argc > 1 && strcmp(argv[1], "multiple") == 0) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  } else {
    begin(&argc, &argv);
  }
  test_all(MPI_COMM_WORLD);
  /* Communicators of 1 to size - 1 members at once, made and freed again and again. */
  for (int low = 1; low < world_size; ++low) {
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < low, -world_rank, &comm);
    for (int round = 0; round < 3; ++round) {
      test_allreduce(comm, round);
      test_reduce(comm, round);
      test_odd_ones(comm, round);
      test_overlap(comm, round);
    }
    MPI_Comm_free(&comm);
  }
  return end();
}
