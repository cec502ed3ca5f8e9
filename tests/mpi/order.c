/* Order of messages that take different ways: short and long, blocking and not, found on arrival or
 * waited for, with wildcards and probes, in several communicators. Each message carries its number.
 * Ranks 2k and 2k + 1 talk to each other. */
#include "check.h"

enum { kMessages = 1200, kLongest = 6000, kTag = 4 };

static int partner;
static int data[kLongest];
static MPI_Comm comms[2];

/* What message `i` of a stream is like, the same at both ends. */
static int length_of(int i) {
  static const int lengths[] = {1, 2, 1, 200, 1, 40, 1, 3};
  return i % 61 == 60 ? kLongest : lengths[(i * 7 + i / 5) % 8];
}

static void check_status(const MPI_Status* s, int i) {
  int count = -1;
  MPI_Get_count(s, MPI_INT, &count);
  CHECK(count == length_of(i) && s->MPI_SOURCE == partner && s->MPI_TAG == kTag);
}

static void check_data(int i) {
  const int count = length_of(i);
  CHECK(data[0] == i);
  for (int k = 1; k < count; ++k) CHECK(data[k] == i * 7 + k);
}

static void send_one(int i, MPI_Comm comm) {
  MPI_Request q;
  for (int k = 1; k < length_of(i); ++k) data[k] = i * 7 + k;
  data[0] = i;
  if (i % 5 == 3) {
    MPI_Isend(data, length_of(i), MPI_INT, partner, kTag, comm, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  } else if (i % 13 == 0) {
    MPI_Ssend(data, length_of(i), MPI_INT, partner, kTag, comm);
  } else {
    MPI_Send(data, length_of(i), MPI_INT, partner, kTag, comm);
  }
}

static void receive_one(int i, MPI_Comm comm) {
  MPI_Status s;
  MPI_Request q;
  MPI_Message m;
  const int source = i % 4 == 3 ? MPI_ANY_SOURCE : partner;
  const int tag = i % 6 == 1 ? MPI_ANY_TAG : kTag;
  memset(data, 0, sizeof(int) * length_of(i));
  if (i % 7 == 1) {
    MPI_Irecv(data, kLongest, MPI_INT, source, tag, comm, &q);
    MPI_Wait(&q, &s);
  } else if (i % 17 == 3) {
    MPI_Mprobe(source, tag, comm, &m, &s);
    check_status(&s, i);
    MPI_Mrecv(data, kLongest, MPI_INT, &m, &s);
  } else {
    if (i % 19 == 2) {
      MPI_Probe(source, tag, comm, &s);
      check_status(&s, i);
    }
    MPI_Recv(data, kLongest, MPI_INT, source, tag, comm, &s);
  }
  check_status(&s, i);
  check_data(i);
}

/* Bursts of several lengths, then an answer: some messages are waited for, some wait. */
static void test_stream(int is_sender, MPI_Comm comm) {
  int answer = -1;
  for (int i = 0; i < kMessages;) {
    const int last = i + 1 + (i / 3) % 9 < kMessages ? i + 1 + (i / 3) % 9 : kMessages;
    const int first = i;
    for (; i < last; ++i) {
      if (is_sender) {
        send_one(i, comm);
      } else {
        receive_one(i, comm);
      }
    }
    if (is_sender) {
      MPI_Recv(&answer, 1, MPI_INT, partner, 1, comm, MPI_STATUS_IGNORE);
      CHECK(answer == first);
    } else {
      MPI_Send(&first, 1, MPI_INT, partner, 1, comm);
    }
  }
}

/* Receives that are posted before a blocking one of the same pattern come first. */
static void test_posted(int is_sender, MPI_Comm comm) {
  int values[4] = {-1, -1, -1, -1};
  MPI_Request q[3];
  for (int round = 0; round < 200; ++round) {
    if (is_sender) {
      MPI_Recv(values, 1, MPI_INT, partner, 1, comm, MPI_STATUS_IGNORE);
      for (int k = 0; k < 4; ++k) {
        const int value = round * 4 + k;
        MPI_Send(&value, 1, MPI_INT, partner, kTag, comm);
      }
      continue;
    }
    MPI_Irecv(&values[0], 1, MPI_INT, partner, kTag, comm, &q[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, kTag, comm, &q[1]);
    MPI_Irecv(&values[2], 1, MPI_INT, partner, MPI_ANY_TAG, comm, &q[2]);
    MPI_Send(&round, 1, MPI_INT, partner, 1, comm);
    MPI_Recv(&values[3], 1, MPI_INT, partner, kTag, comm, MPI_STATUS_IGNORE);
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 4; ++k) CHECK(values[k] == round * 4 + k);
  }
}

/* A cancelled receive takes nothing; a message that is too long says so. */
static void test_odd_ends(int is_sender, MPI_Comm comm) {
  int values[2] = {7, 8}, value = -1, flag = 0;
  MPI_Request q;
  MPI_Status s;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int round = 0; round < 50; ++round) {
    if (is_sender) {
      MPI_Recv(&value, 1, MPI_INT, partner, 1, comm, MPI_STATUS_IGNORE);
      MPI_Send(values, 2, MPI_INT, partner, kTag, comm);
      MPI_Send(&round, 1, MPI_INT, partner, kTag, comm);
      continue;
    }
    MPI_Irecv(&value, 1, MPI_INT, partner, kTag, comm, &q);
    MPI_Cancel(&q);
    MPI_Wait(&q, &s);
    MPI_Test_cancelled(&s, &flag);
    CHECK(flag);
    MPI_Send(&round, 1, MPI_INT, partner, 1, comm);
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&value, 1, MPI_INT, partner, kTag, comm, &s));
    MPI_Recv(&value, 1, MPI_INT, partner, kTag, comm, &s);
    CHECK(value == round);
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  comms[1] = MPI_COMM_WORLD;
  partner = world_rank ^ 1;
  for (int k = 0; k < 4 && partner < world_size; ++k) {
    const int is_sender = (world_rank + k / 2) % 2 == 0;
    test_stream(is_sender, comms[k % 2]);
    test_posted(is_sender, comms[k % 2]);
    test_odd_ends(is_sender, comms[k % 2]);
  }
  MPI_Comm_free(&comms[0]);
  return end();
}
