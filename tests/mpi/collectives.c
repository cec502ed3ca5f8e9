/* All collectives, blocking and not, many sizes, roots, in place; results are computed beside. */
#include <stddef.h>

#include "check.h"

#define MAX 70000

static int from[MAX], into[MAX];

static int value(int rank, int i) { return (rank + 1) * 1000 + i % 977; }
static void fill(int n) {
  for (int i = 0; i < n; ++i) from[i] = value(world_rank, i);
}
static int sum(int i) {
  int s = 0;
  for (int r = 0; r < world_size; ++r) s += value(r, i);
  return s;
}
static void same(int n, int (*wanted)(int), int line) {
  for (int i = 0; i < n; ++i) {
    if (into[i] != wanted(i)) {
      fprintf(stderr, "line %d rank %d: element %d of %d is %d, not %d\n", line, world_rank, i, n, into[i], wanted(i));
      ++error_count;
      return;
    }
  }
}

/* Not commutative: composition of x -> a x + b modulo a prime. */
static void compose(void* in, void* inout, int* n, MPI_Datatype* t) {
  int *x = in, *y = inout;
  (void)t;
  for (int i = 0; i < *n; ++i) {
    int a = (int)((long long)x[2 * i] * y[2 * i] % 10007);
    int b = (int)(((long long)x[2 * i + 1] * y[2 * i] + y[2 * i + 1]) % 10007);
    y[2 * i] = a;
    y[2 * i + 1] = b;
  }
}

static void test_reductions(int n) {
  fill(n);
  memset(into, 0, sizeof into);
  MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  same(n, sum, __LINE__);
  memcpy(into, from, sizeof(int) * n);
  MPI_Allreduce(MPI_IN_PLACE, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  same(n, sum, __LINE__);
  MPI_Request q;
  memset(into, 0, sizeof into);
  MPI_Iallreduce(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  same(n, sum, __LINE__);
  for (int root = 0; root < world_size; ++root) {
    memset(into, 0, sizeof into);
    MPI_Reduce(from, into, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    if (world_rank == root) same(n, sum, __LINE__);
    memcpy(into, from, sizeof(int) * n);
    MPI_Reduce(world_rank == root ? MPI_IN_PLACE : from, into, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    if (world_rank == root) same(n, sum, __LINE__);
  }
  memset(into, 0, sizeof into);
  MPI_Scan(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < n; i += 97) {
    int s = 0;
    for (int r = 0; r <= world_rank; ++r) s += value(r, i);
    CHECK(into[i] == s);
  }
  memset(into, 0, sizeof into);
  MPI_Exscan(from, into, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < n; i += 97) {
    int s = 0;
    for (int r = 0; r < world_rank; ++r) s += value(r, i);
    CHECK(world_rank == 0 || into[i] == s);
  }
  int block = n / world_size;
  MPI_Reduce_scatter_block(from, into, block, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < block; ++i) CHECK(into[i] == sum(world_rank * block + i));
  int* counts = malloc(sizeof(int) * world_size);
  int start = 0, total = 0;
  for (int r = 0; r < world_size; ++r) {
    counts[r] = block > r ? block - r : 0;
    if (r < world_rank) start += counts[r];
    total += counts[r];
  }
  MPI_Reduce_scatter(from, into, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < counts[world_rank]; ++i) CHECK(into[i] == sum(start + i));
  free(counts);
}

static void test_order(void) {
  MPI_Op op;
  MPI_Datatype pair;
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int mine[6], all[6], prefix[6], wanted[6] = {1, 0, 1, 0, 1, 0};
  for (int i = 0; i < 6; ++i) mine[i] = world_rank * 7 + i + 2;
  for (int r = 0; r < world_size; ++r) {
    int next[6], n = 3;
    for (int i = 0; i < 6; ++i) next[i] = r * 7 + i + 2;
    compose(wanted, next, &n, NULL);
    memcpy(wanted, next, sizeof next);
    if (r == world_rank) memcpy(prefix, wanted, sizeof prefix);
  }
  MPI_Scan(mine, all, 3, pair, op, MPI_COMM_WORLD);
  CHECK(memcmp(all, prefix, sizeof all) == 0);
  MPI_Allreduce(mine, all, 3, pair, op, MPI_COMM_WORLD);
  CHECK(memcmp(all, wanted, sizeof all) == 0);
  for (int root = 0; root < world_size; ++root) {
    memset(all, 0, sizeof all);
    MPI_Reduce(mine, all, 3, pair, op, root, MPI_COMM_WORLD);
    CHECK(world_rank != root || memcmp(all, wanted, sizeof all) == 0);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

/* An operator that copies whole elements of its own, of a type that has their first member only. Bytes
 * of the heap beside the temporaries would be overwritten, which the heap or the next call notice. */
typedef struct {
  double value;
  char rest[1000];
} Wide;
typedef struct {
  char rest[1000];
  double value;
} Late;
static void larger_wide(void* in, void* inout, int* n, MPI_Datatype* t) {
  (void)t;
  for (int i = 0; i < *n; ++i)
    if (((Wide*)in)[i].value > ((Wide*)inout)[i].value) ((Wide*)inout)[i] = ((Wide*)in)[i];
}
static void larger_late(void* in, void* inout, int* n, MPI_Datatype* t) {
  (void)t;
  for (int i = 0; i < *n; ++i)
    if (((Late*)in)[i].value > ((Late*)inout)[i].value) ((Late*)inout)[i] = ((Late*)in)[i];
}

static void test_wide_elements(void) {
  enum { kKept = 20 };
  MPI_Op wide_op, late_op;
  MPI_Datatype wide_type, late_type, late_member;
  const MPI_Aint place = offsetof(Late, value);
  const int one = 1;
  static Wide wide[2], wide_result[2];
  static Late late[2], late_result[2];
  MPI_Type_create_resized(MPI_DOUBLE, 0, sizeof(Wide), &wide_type);
  MPI_Type_create_hindexed(1, &one, &place, MPI_DOUBLE, &late_member);
  MPI_Type_create_resized(late_member, 0, sizeof(Late), &late_type);
  MPI_Type_commit(&wide_type);
  MPI_Type_commit(&late_type);
  MPI_Op_create(larger_wide, 1, &wide_op);
  MPI_Op_create(larger_late, 1, &late_op);
  for (int round = 0; round < 200; ++round) {
    unsigned char* kept[kKept];
    for (int i = 0; i < kKept; ++i) kept[i] = memset(malloc(60 + 16 * i), i, 60 + 16 * i);
    for (int i = 0; i < 2; ++i) {
      wide[i].value = late[i].value = (world_rank * 7 + round + i) % 11;
      memset(wide[i].rest, 0x5a, sizeof wide[i].rest);
      memset(late[i].rest, 0x5a, sizeof late[i].rest);
    }
    double best[2] = {0, 0};
    for (int r = 0; r < world_size; ++r)
      for (int i = 0; i < 2; ++i)
        if ((r * 7 + round + i) % 11 > best[i]) best[i] = (r * 7 + round + i) % 11;
    MPI_Allreduce(wide, wide_result, 2, wide_type, wide_op, MPI_COMM_WORLD);
    MPI_Allreduce(late, late_result, 2, late_type, late_op, MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) CHECK(wide_result[i].value == best[i] && late_result[i].value == best[i]);
    MPI_Reduce(wide, wide_result, 2, wide_type, wide_op, round % world_size, MPI_COMM_WORLD);
    MPI_Scan(late, late_result, 2, late_type, late_op, MPI_COMM_WORLD);
    for (int i = 0; i < kKept; ++i) {
      CHECK(kept[i][0] == i && kept[i][59 + 16 * i] == i);
      free(kept[i]);
    }
  }
  MPI_Op_free(&wide_op);
  MPI_Op_free(&late_op);
  MPI_Type_free(&wide_type);
  MPI_Type_free(&late_type);
  MPI_Type_free(&late_member);
}

/* Buffers in which nothing comes, or which do not count, may be null. */
static void test_no_buffer(void) {
  int* counts = calloc(world_size, sizeof(int));
  MPI_Request q;
  fill(2);
  counts[0] = 2;
  memset(into, 0, 2 * sizeof(int));
  MPI_Reduce_scatter(from, world_rank == 0 ? into : NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) same(2, sum, __LINE__);
  memset(into, 0, 2 * sizeof(int));
  MPI_Ireduce_scatter(from, world_rank == 0 ? into : NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  if (world_rank == 0) same(2, sum, __LINE__);
  memset(into, 0, 2 * sizeof(int));
  MPI_Exscan(from, world_rank == 0 ? NULL : into, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) {
    int s = 0;
    for (int r = 0; r < world_rank; ++r) s += value(r, i);
    CHECK(world_rank == 0 || into[i] == s);
  }
  free(counts);
}

static void test_moves(int n) {
  MPI_Request q;
  int* all = malloc(sizeof(int) * (n * world_size + 1));
  int* parts = malloc(sizeof(int) * (n * world_size + 1));
  int* counts = malloc(sizeof(int) * world_size);
  int* places = malloc(sizeof(int) * world_size);
  for (int root = 0; root < world_size; ++root) {
    fill(n);
    MPI_Bcast(from, n, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) CHECK(from[i] == value(root, i));
    fill(n);
    MPI_Ibcast(from, n, MPI_INT, root, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; ++i) CHECK(from[i] == value(root, i));
    fill(n);
    memset(all, 0, sizeof(int) * n * world_size);
    MPI_Gather(from, n, MPI_INT, all, n, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; world_rank == root && i < n * world_size; ++i) CHECK(all[i] == value(i / n, i % n));
    memset(into, 0, sizeof(int) * n);
    MPI_Scatter(all, n, MPI_INT, into, n, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) CHECK(into[i] == value(world_rank, i));
    for (int r = 0, at = 0; r < world_size; ++r) {
      counts[r] = r < n ? n - r : 0;
      places[r] = at;
      at += counts[r];
    }
    memset(all, 0, sizeof(int) * n * world_size);
    MPI_Gatherv(from, counts[world_rank], MPI_INT, all, counts, places, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; world_rank == root && r < world_size; ++r)
      for (int i = 0; i < counts[r]; ++i) CHECK(all[places[r] + i] == value(r, i));
    memset(into, 0, sizeof(int) * n);
    MPI_Scatterv(all, counts, places, MPI_INT, into, counts[world_rank], MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < counts[world_rank]; ++i) CHECK(into[i] == value(world_rank, i));
  }
  memset(all, 0, sizeof(int) * n * world_size);
  MPI_Allgather(from, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < n * world_size; ++i) CHECK(all[i] == value(i / n, i % n));
  memset(all, 0, sizeof(int) * n * world_size);
  MPI_Allgatherv(from, counts[world_rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r)
    for (int i = 0; i < counts[r]; ++i) CHECK(all[places[r] + i] == value(r, i));
  for (int r = 0; r < world_size; ++r)
    for (int i = 0; i < n; ++i) parts[r * n + i] = value(world_rank, i) * 16 + r;
  memset(all, 0, sizeof(int) * n * world_size);
  MPI_Alltoall(parts, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r)
    for (int i = 0; i < n; ++i) CHECK(all[r * n + i] == value(r, i) * 16 + world_rank);
  memcpy(all, parts, sizeof(int) * n * world_size);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r)
    for (int i = 0; i < n; ++i) CHECK(all[r * n + i] == value(r, i) * 16 + world_rank);
  for (int r = 0; r < world_size; ++r) {
    counts[r] = n;
    places[r] = (world_size - 1 - r) * n;
  }
  memset(all, 0, sizeof(int) * n * world_size);
  MPI_Ialltoallv(parts, counts, places, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int r = 0; r < world_size; ++r)
    for (int i = 0; i < n; ++i)
      CHECK(all[(world_size - 1 - r) * n + i] == value(r, i) * 16 + world_size - 1 - world_rank);
  free(all);
  free(parts);
  free(counts);
  free(places);
}

static void test_persistent(void) {
  MPI_Request q[2];
  int x = 0, y = 0;
  MPI_Allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
  for (int i = 0; i < 5; ++i) {
    x = world_rank + i;
    MPI_Startall(2, q);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK(y == world_size * (world_size - 1) / 2 + i * world_size);
  }
  MPI_Request_free(&q[0]);
  MPI_Request_free(&q[1]);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int sizes[] = {0, 1, 3, 64, 1000, 20000};
  for (int i = 0; i < 6; ++i) test_reductions(sizes[i]);
  for (int i = 1; i < 5; ++i) test_moves(sizes[i]);
  test_order();
  test_wide_elements();
  test_no_buffer();
  test_persistent();
  for (int i = 0; i < 50; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_ROOT, MPI_Bcast(from, 1, MPI_INT, world_size, MPI_COMM_WORLD));
  FAILS(MPI_ERR_OP, MPI_Allreduce(from, into, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
  FAILS(MPI_ERR_BUFFER, MPI_Scan(from, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT, MPI_Bcast(from, -1, MPI_INT, 0, MPI_COMM_WORLD));
  return end();
}
