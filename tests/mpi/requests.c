/* Requests of short messages: many at once, in every way to end them. */
#include "check.h"

enum { kMany = 200 };

static int left, right;

static void check_status(const MPI_Status* s, int tag, int bytes) {
  int count = -1;
  MPI_Get_count(s, MPI_BYTE, &count);
  CHECK(s->MPI_SOURCE == left && s->MPI_TAG == tag && count == bytes);
}

/* More than the ring of a node holds, without a pause; some without bytes. */
static void test_window(int bytes) {
  static char from[kMany][64], into[kMany][64];
  MPI_Request q[2 * kMany];
  MPI_Status s[2 * kMany];
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kMany; ++i) {
      memset(from[i], world_rank + i + round, 64);
      memset(into[i], -1, 64);
      MPI_Irecv(into[i], bytes, MPI_BYTE, left, i % 7, MPI_COMM_WORLD, &q[i]);
    }
    for (int i = 0; i < kMany; ++i) {
      MPI_Isend(from[i], i % 3 == 0 ? 0 : bytes, MPI_BYTE, right, i % 7, MPI_COMM_WORLD,
                &q[kMany + i]);
    }
    CHECK(MPI_Waitall(2 * kMany, q, s) == MPI_SUCCESS);
    for (int i = 0; i < kMany; ++i) {
      const int got = i % 3 == 0 ? 0 : bytes;
      check_status(&s[i], i % 7, got);
      CHECK(q[i] == MPI_REQUEST_NULL && q[kMany + i] == MPI_REQUEST_NULL);
      for (int b = 0; b < 64; ++b) {
        CHECK(into[i][b] == (char)(b < got ? left + i + round : -1));
      }
    }
  }
}

static void test_one_by_one(void) {
  int x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, indices[12], count = 0, flag = 0, left_over = 12;
  MPI_Request q[12];
  MPI_Status s;
  for (int i = 0; i < 6; ++i) {
    MPI_Irecv(&y[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &q[i]);
  }
  for (int i = 0; i < 6; ++i) {
    MPI_Isend(&x[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &q[6 + i]);
  }
  MPI_Wait(&q[9], &s);
  CHECK(q[9] == MPI_REQUEST_NULL && q[10] != MPI_REQUEST_NULL);
  --left_over;
  MPI_Test_cancelled(&s, &flag);
  CHECK(!flag);
  while (!flag) {
    MPI_Request_get_status(q[3], &flag, &s);
  }
  check_status(&s, 3, (int)sizeof(int));
  CHECK(q[3] != MPI_REQUEST_NULL);
  int index = -1;
  MPI_Waitany(12, q, &index, &s);
  CHECK(index >= 0 && index < 12 && q[index] == MPI_REQUEST_NULL);
  for (--left_over; left_over > 0; left_over -= count) {
    MPI_Waitsome(12, q, &count, indices, MPI_STATUSES_IGNORE);
    CHECK(count > 0);
  }
  for (int i = 0; i < 12; ++i) {
    CHECK(q[i] == MPI_REQUEST_NULL);
  }
  for (int i = 0; i < 6; ++i) {
    CHECK(y[i] == x[i]);
  }
}

/* Given up by the program: the message goes, and comes, all the same. */
static void test_freed(void) {
  int x = 71 + world_rank, y = -1, z = -1;
  MPI_Request first, second;
  MPI_Irecv(&y, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &first);
  MPI_Irecv(&z, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &second);
  MPI_Request_free(&first);
  CHECK(first == MPI_REQUEST_NULL);
  MPI_Isend(&x, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &first);
  MPI_Request_free(&first);
  CHECK(first == MPI_REQUEST_NULL);
  MPI_Send(&x, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
  MPI_Wait(&second, MPI_STATUS_IGNORE);
  CHECK(y == 71 + left && z == 71 + left);
}

static void test_cancelled(void) {
  int x = 5, y = -1, flag = 0;
  MPI_Request q[2];
  MPI_Status s[2];
  MPI_Irecv(&y, 1, MPI_INT, left, 99, MPI_COMM_WORLD, &q[0]);
  MPI_Cancel(&q[0]);
  MPI_Wait(&q[0], &s[0]);
  MPI_Test_cancelled(&s[0], &flag);
  CHECK(flag && y == -1 && q[0] == MPI_REQUEST_NULL);
  MPI_Irecv(&y, 1, MPI_INT, left, 98, MPI_COMM_WORLD, &q[0]);
  MPI_Isend(&x, 1, MPI_INT, right, 98, MPI_COMM_WORLD, &q[1]);
  MPI_Waitall(2, q, s);
  MPI_Test_cancelled(&s[0], &flag);
  CHECK(!flag && y == 5);
  MPI_Test_cancelled(&s[1], &flag);
  CHECK(!flag);
}

/* A communicator lives as long as its messages. */
static void test_comm(void) {
  int x = world_rank, y = -1;
  MPI_Comm comm;
  MPI_Request q[2];
  MPI_Status s[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Irecv(&y, 1, MPI_INT, left, 4, comm, &q[0]);
  MPI_Isend(&x, 1, MPI_INT, right, 4, comm, &q[1]);
  MPI_Comm_free(&comm);
  MPI_Waitall(2, q, s);
  check_status(&s[0], 4, (int)sizeof(int));
  CHECK(y == left);
}

/* Calls that name one communicator and then another, which may lie where a freed one was. */
static void test_comms_in_turn(void) {
  for (int round = 0; round < 6; ++round) {
    int rank, here[2] = {-1, -1}, there[2] = {-1, -1};
    MPI_Comm comm;
    MPI_Request q[8];
    MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 == 0 ? -world_rank : world_rank, &comm);
    MPI_Comm_rank(comm, &rank);
    const int last = (rank + world_size - 1) % world_size, next = (rank + 1) % world_size;
    const int x[2] = {world_rank, world_rank + 1}, y[2] = {rank + 100, rank + 200};
    for (int i = 0; i < 2; ++i) {
      MPI_Irecv(&here[i], 1, MPI_INT, left, 9, MPI_COMM_WORLD, &q[i]);
      MPI_Irecv(&there[i], 1, MPI_INT, i == 0 ? last : MPI_ANY_SOURCE, 9, comm, &q[2 + i]);
    }
    for (int i = 0; i < 2; ++i) {
      MPI_Isend(&y[i], 1, MPI_INT, next, 9, comm, &q[4 + i]);
      MPI_Isend(&x[i], 1, MPI_INT, right, 9, MPI_COMM_WORLD, &q[6 + i]);
    }
    if (round % 3 == 0) {
      MPI_Comm_free(&comm);
    }
    CHECK(MPI_Waitall(8, q, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(here[0] == left && here[1] == left + 1);
    CHECK(there[0] == last + 100 && there[1] == last + 200);
    if (round % 3 != 0) {
      MPI_Comm_free(&comm);
    }
  }
}

static void test_truncated(void) {
  int x[2] = {8, 9}, y[3] = {-1, -1, -1};
  MPI_Request q[3];
  MPI_Status s[3];
  int class = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Irecv(&y[0], 1, MPI_INT, left, 6, MPI_COMM_WORLD, &q[0]);
  MPI_Irecv(&y[2], 1, MPI_INT, left, 7, MPI_COMM_WORLD, &q[1]);
  MPI_Isend(x, 2, MPI_INT, right, 6, MPI_COMM_WORLD, &q[2]);
  MPI_Send(&x[1], 1, MPI_INT, right, 7, MPI_COMM_WORLD);
  FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(3, q, s));
  MPI_Error_class(s[0].MPI_ERROR, &class);
  CHECK(class == MPI_ERR_TRUNCATE);
  CHECK(s[1].MPI_ERROR == MPI_SUCCESS || s[1].MPI_ERROR == MPI_ERR_PENDING);
  CHECK(y[1] == -1 && y[2] == 9);
  FAILS(MPI_ERR_TAG, MPI_Isend(x, 1, MPI_INT, right, -3, MPI_COMM_WORLD, &q[0]));
  FAILS(MPI_ERR_RANK, MPI_Irecv(x, 1, MPI_INT, world_size, 3, MPI_COMM_WORLD, &q[0]));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  left = (world_rank + world_size - 1) % world_size;
  right = (world_rank + 1) % world_size;
  test_window(8);
  test_window(64);
  test_one_by_one();
  test_freed();
  test_cancelled();
  test_comm();
  test_comms_in_turn();
  test_truncated();
  return end();
}
