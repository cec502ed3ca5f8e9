/* Point-to-point: all modes, probes, persistent and generalized requests, types, errors. */
#include "check.h"

static int left, right;

static void test_modes(int n) {
  int* a = malloc(sizeof(int) * (n + 1));
  int* b = malloc(sizeof(int) * (n + 1));
  MPI_Status s;
  MPI_Request q[2];
  int count;
  for (int i = 0; i < n; ++i) a[i] = world_rank * 31 + i;
  for (int mode = 0; mode < 4; ++mode) {
    memset(b, 0, sizeof(int) * n);
    MPI_Irecv(b, n, MPI_INT, left, 5, MPI_COMM_WORLD, &q[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mode == 0) MPI_Isend(a, n, MPI_INT, right, 5, MPI_COMM_WORLD, &q[1]);
    if (mode == 1) MPI_Issend(a, n, MPI_INT, right, 5, MPI_COMM_WORLD, &q[1]);
    if (mode == 2) MPI_Irsend(a, n, MPI_INT, right, 5, MPI_COMM_WORLD, &q[1]);
    if (mode == 3) {
      void* buffer = malloc(sizeof(int) * n + MPI_BSEND_OVERHEAD);
      int size;
      MPI_Buffer_attach(buffer, (int)sizeof(int) * n + MPI_BSEND_OVERHEAD);
      MPI_Ibsend(a, n, MPI_INT, right, 5, MPI_COMM_WORLD, &q[1]);
      MPI_Wait(&q[0], &s);
      MPI_Wait(&q[1], MPI_STATUS_IGNORE);
      MPI_Buffer_detach(&buffer, &size);
      CHECK(size == (int)sizeof(int) * n + MPI_BSEND_OVERHEAD);
      free(buffer);
    } else {
      MPI_Status both[2];
      MPI_Waitall(2, q, both);
      s = both[0];
    }
    MPI_Get_count(&s, MPI_INT, &count);
    CHECK(count == n && s.MPI_SOURCE == left && s.MPI_TAG == 5);
    for (int i = 0; i < n; ++i) CHECK(b[i] == left * 31 + i);
    CHECK(q[0] == MPI_REQUEST_NULL && q[1] == MPI_REQUEST_NULL);
  }
  MPI_Sendrecv(a, n, MPI_INT, right, 1, b, n, MPI_INT, left, 1, MPI_COMM_WORLD, &s);
  for (int i = 0; i < n; ++i) CHECK(b[i] == left * 31 + i);
  MPI_Sendrecv_replace(a, n, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, &s);
  for (int i = 0; i < n; ++i) CHECK(a[i] == left * 31 + i);
  MPI_Isendrecv(a, n, MPI_INT, right, 3, b, n, MPI_INT, left, 3, MPI_COMM_WORLD, q);
  MPI_Wait(q, &s);
  MPI_Get_count(&s, MPI_INT, &count);
  CHECK(count == n && s.MPI_SOURCE == left);
  free(a);
  free(b);
}

static void test_probes(void) {
  int x = world_rank, y = -1, flag = 0, count;
  MPI_Status s;
  MPI_Request q;
  MPI_Message m;
  MPI_Isend(&x, 1, MPI_INT, right, 9, MPI_COMM_WORLD, &q);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
  CHECK(s.MPI_SOURCE == left && s.MPI_TAG == 9);
  MPI_Get_count(&s, MPI_INT, &count);
  CHECK(count == 1);
  MPI_Recv(&y, 1, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(y == left);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &s);
  CHECK(!flag);
  MPI_Isend(&x, 1, MPI_INT, right, 10, MPI_COMM_WORLD, &q);
  MPI_Mprobe(left, 10, MPI_COMM_WORLD, &m, &s);
  MPI_Iprobe(left, 10, MPI_COMM_WORLD, &flag, &s);
  CHECK(!flag);
  y = -1;
  MPI_Mrecv(&y, 1, MPI_INT, &m, &s);
  CHECK(y == left && m == MPI_MESSAGE_NULL && s.MPI_SOURCE == left);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Isend(&x, 1, MPI_INT, right, 11, MPI_COMM_WORLD, &q);
  do MPI_Improbe(left, 11, MPI_COMM_WORLD, &flag, &m, &s); while (!flag);
  MPI_Request r;
  MPI_Imrecv(&y, 1, MPI_INT, &m, &r);
  MPI_Wait(&r, &s);
  CHECK(y == left);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Recv(&y, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &s);
  CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &m, &s);
  CHECK(m == MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(&y, 1, MPI_INT, &m, &s);
}

/* The ends of a line have a neighbour on one side only. */
static void test_line(void) {
  const int before = world_rank > 0 ? world_rank - 1 : MPI_PROC_NULL;
  const int after = world_rank < world_size - 1 ? world_rank + 1 : MPI_PROC_NULL;
  for (int turn = 0; turn < 300; ++turn) {
    const int to = turn % 2 ? before : after, from = turn % 2 ? after : before;
    int mine = world_rank + 100 * turn, theirs = -1, count = -1;
    MPI_Status s;
    MPI_Sendrecv(&mine, 1, MPI_INT, to, 21, &theirs, 1, MPI_INT, from, 21, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    CHECK(s.MPI_SOURCE == from && count == (from == MPI_PROC_NULL ? 0 : 1));
    CHECK(theirs == (from == MPI_PROC_NULL ? -1 : from + 100 * turn));
  }
}

static void test_many(void) {
  enum { N = 40 };
  int in[N], out[N], index, flag, done = 0, indices[N], found;
  MPI_Request q[N], p[N];
  MPI_Status s;
  for (int i = 0; i < N; ++i) MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &q[i]);
  for (int i = 0; i < N; ++i) {
    out[i] = i * i;
    MPI_Isend(&out[i], 1, MPI_INT, right, N - 1 - i, MPI_COMM_WORLD, &p[i]);
  }
  for (int i = 0; i < N / 2; ++i) {
    MPI_Waitany(N, q, &index, &s);
    CHECK(s.MPI_TAG == index && in[index] == (N - 1 - index) * (N - 1 - index));
    ++done;
  }
  while (done < N) {
    MPI_Waitsome(N, q, &found, indices, MPI_STATUSES_IGNORE);
    done += found;
  }
  MPI_Waitany(N, q, &index, &s);
  CHECK(index == MPI_UNDEFINED);
  do MPI_Testall(N, p, &flag, MPI_STATUSES_IGNORE); while (!flag);
  MPI_Testany(N, p, &index, &flag, &s);
  CHECK(flag && index == MPI_UNDEFINED);
}

static int queried, freed;
static int query(void* x, MPI_Status* s) {
  MPI_Status_set_elements(s, MPI_INT, 3);
  MPI_Status_set_cancelled(s, 0);
  s->MPI_SOURCE = *(int*)x;
  s->MPI_TAG = 4;
  ++queried;
  return MPI_SUCCESS;
}
static int release(void* x) {
  (void)x;
  ++freed;
  return MPI_SUCCESS;
}
static int cancel(void* x, int complete) {
  (void)x;
  (void)complete;
  return MPI_SUCCESS;
}

static void test_requests(void) {
  int x = 1, y = 0, flag, seven = 7;
  MPI_Request q[2], g;
  MPI_Status s;
  MPI_Send_init(&x, 1, MPI_INT, right, 21, MPI_COMM_WORLD, &q[0]);
  MPI_Recv_init(&y, 1, MPI_INT, left, 21, MPI_COMM_WORLD, &q[1]);
  for (int i = 0; i < 4; ++i) {
    x = world_rank + i;
    MPI_Startall(2, q);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK(y == left + i);
  }
  MPI_Request_free(&q[0]);
  MPI_Request_free(&q[1]);
  MPI_Irecv(&y, 1, MPI_INT, left, 99, MPI_COMM_WORLD, q);
  MPI_Cancel(q);
  MPI_Wait(q, &s);
  MPI_Test_cancelled(&s, &flag);
  CHECK(flag);
  MPI_Grequest_start(query, release, cancel, &seven, &g);
  MPI_Test(&g, &flag, &s);
  CHECK(!flag);
  MPI_Grequest_complete(g);
  MPI_Wait(&g, &s);
  CHECK(s.MPI_SOURCE == 7 && queried == 1 && freed == 1);
  MPI_Isend(&x, 1, MPI_INT, right, 30, MPI_COMM_WORLD, &g);
  MPI_Request_free(&g);
  MPI_Recv(&y, 1, MPI_INT, left, 30, MPI_COMM_WORLD, &s);
}

static void test_types(void) {
  MPI_Datatype column;
  double m[8][8], v[8];
  MPI_Request q;
  MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 64; ++i) m[i / 8][i % 8] = i + world_rank * 100;
  MPI_Isend(&m[0][3], 1, column, right, 0, MPI_COMM_WORLD, &q);
  MPI_Recv(v, 8, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int i = 0; i < 8; ++i) CHECK(v[i] == i * 8 + 3 + left * 100);
  MPI_Irecv(&m[0][1], 1, column, left, 1, MPI_COMM_WORLD, &q);
  MPI_Type_free(&column);
  MPI_Send(v, 8, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  int twice = (left + world_size - 1) % world_size;
  for (int i = 0; i < 8; ++i) CHECK(m[i][1] == i * 8 + 3 + twice * 100);
}

static void test_errors(void) {
  int x[4] = {0};
  MPI_Status s;
  MPI_Request q;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_RANK, MPI_Send(x, 1, MPI_INT, world_size, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TAG, MPI_Send(x, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT, MPI_Send(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TYPE, MPI_Send(x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Send(x, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
  MPI_Isend(x, 4, MPI_INT, right, 60, MPI_COMM_WORLD, &q);
  FAILS(MPI_ERR_TRUNCATE, MPI_Recv(x, 2, MPI_INT, left, 60, MPI_COMM_WORLD, &s));
  MPI_Wait(&q, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  left = (world_rank + world_size - 1) % world_size;
  right = (world_rank + 1) % world_size;
  test_modes(1);
  MPI_Barrier(MPI_COMM_WORLD);
  test_modes(300);
  MPI_Barrier(MPI_COMM_WORLD);
  test_modes(200000);
  MPI_Barrier(MPI_COMM_WORLD);
  test_probes();
  MPI_Barrier(MPI_COMM_WORLD);
  test_line();
  test_many();
  MPI_Barrier(MPI_COMM_WORLD);
  test_requests();
  MPI_Barrier(MPI_COMM_WORLD);
  test_types();
  MPI_Barrier(MPI_COMM_WORLD);
  test_errors();
  return end();
}
