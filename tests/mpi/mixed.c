/* Every way to send against every way to receive, chosen at random by each rank: rings of all
 * distances, so that a message is now waited for and now found, from this worker, another one or
 * another node. Each message says its round and sender.
 *
 * usage: mixed [ROUNDS]
 */
#include "check.h"

enum { kLongest = 6000, kWays = 10 };

static int out[kLongest], in[kLongest + 1];
static unsigned state;

static unsigned next_random(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 10;
}

/* The same at both ends. */
static int length_of(int round) {
  static const int lengths[] = {1, 1, 2, 30, 1, 256, 1, 200};
  return round % 97 == 96 ? kLongest : lengths[(round / 3) % 8];
}

static void check_message(const MPI_Status* s, int round, int from) {
  int count = -1;
  MPI_Get_count(s, MPI_INT, &count);
  CHECK(count == length_of(round) && s->MPI_SOURCE == from && s->MPI_TAG == round);
  CHECK(in[0] == round && in[count - 1] == (count == 1 ? round : from));
}

/* The receive comes first, or the send does and must not wait for it. */
static void exchange(int way, int round, int to, int from, MPI_Comm comm) {
  const int count = length_of(round);
  MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Message message;
  MPI_Status s;
  int flag = 0, index;
  if (way == 0 || way == 5 || way == 8) {
    MPI_Irecv(in, kLongest, MPI_INT, way == 5 ? MPI_ANY_SOURCE : from, round, comm, &q[0]);
    if (way == 8) {
      MPI_Cancel(&q[0]);
      MPI_Wait(&q[0], &s);
      MPI_Test_cancelled(&s, &flag);
    }
  }
  if (way == 2) {
    MPI_Sendrecv(out, count, MPI_INT, to, round, in, kLongest, MPI_INT, from, round, comm, &s);
    check_message(&s, round, from);
    return;
  }
  if (way == 4) {
    MPI_Issend(out, count, MPI_INT, to, round, comm, &q[1]);
  } else if (way == 3 || way == 7 || count > 256) {
    MPI_Isend(out, count, MPI_INT, to, round, comm, &q[1]);
  } else {
    MPI_Send(out, count, MPI_INT, to, round, comm);
  }
  if (way == 0) {
    MPI_Wait(&q[0], &s);
  } else if (way == 5) {
    while (!flag) {
      MPI_Testany(1, q, &index, &flag, &s);
    }
  } else if (way == 4 || way == 7) {
    if (way == 4) {
      MPI_Probe(MPI_ANY_SOURCE, round, comm, &s);
    } else {
      while (!flag) {
        MPI_Iprobe(from, MPI_ANY_TAG, comm, &flag, &s);
      }
    }
    MPI_Recv(in, kLongest, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, comm, &s);
  } else if (way == 6) {
    MPI_Mprobe(from, round, comm, &message, &s);
    MPI_Mrecv(in, kLongest, MPI_INT, &message, &s);
  } else if (way != 8 || flag) {
    MPI_Recv(in, kLongest, MPI_INT, way == 9 ? MPI_ANY_SOURCE : from,
             way == 1 ? MPI_ANY_TAG : round, comm, &s);
  }
  check_message(&s, round, from);
  MPI_Wait(&q[1], MPI_STATUS_IGNORE);
}

/* Many to one: from each sender in its order, whoever comes first. */
static void test_funnel(MPI_Comm comm) {
  enum { kMessages = 300 };
  if (world_rank != 0) {
    for (int i = 0; i < kMessages; ++i) {
      MPI_Send(&i, 1, MPI_INT, 0, 5, comm);
      if (i % 50 == 49) {
        MPI_Recv(in, 1, MPI_INT, 0, 6, comm, MPI_STATUS_IGNORE);
      }
    }
    return;
  }
  int* next = calloc((size_t)world_size, sizeof(int));
  for (int i = 0; i < kMessages * (world_size - 1); ++i) {
    int value = -1;
    MPI_Status s;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &s);
    CHECK(value == next[s.MPI_SOURCE]++);
    if (value % 50 == 49) {
      MPI_Send(&value, 1, MPI_INT, s.MPI_SOURCE, 6, comm);
    }
  }
  free(next);
}

/* A message that is too long for a receive that waits for it. */
static void test_truncation(int to, int from, MPI_Comm comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < 40; ++i) {
    MPI_Request q;
    in[1] = -5;
    MPI_Isend(out, 2, MPI_INT, to, 7, comm, &q);
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(in, 1, MPI_INT, from, 7, comm, MPI_STATUS_IGNORE));
    CHECK(in[1] == -5);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  begin(&argc, &argv);
  state = (unsigned)world_rank * 2654435761u + 1;
  const int rounds = argc > 1 ? atoi(argv[1]) : 2500;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < rounds; ++round) {
    const int distance = world_size == 1 ? 0 : 1 + (round / 40) % (world_size - 1);
    const int to = (world_rank + distance) % world_size;
    const int from = (world_rank + world_size - distance) % world_size;
    for (int i = 0; i < length_of(round); ++i) {
      out[i] = world_rank;
    }
    out[0] = round;
    exchange((int)(next_random() % kWays), round, to, from, round % 2 == 0 ? comm : MPI_COMM_WORLD);
  }
  test_funnel(comm);
  if (world_size > 1) {
    test_truncation((world_rank + 1) % world_size, (world_rank + world_size - 1) % world_size,
                    comm);
  }
  MPI_Comm_free(&comm);
  return end();
}
