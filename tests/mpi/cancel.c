/* MPI_Cancel of sends: each is received or taken back, never both and never neither; one that
 * nobody has received is taken back (by Sterna; the standard leaves that to the implementation), as
 * if it had never been sent. */
#include "check.h"

enum {
  kLong = 300000,
  kTag = 5,
  kWord = 6,
  kFirstTag = 10
}; /* Each message of `value` has a tag of its own. */

static int is_ours;
static int sent[kLong], got[kLong];

static int wait_cancelled(MPI_Request* q) {
  MPI_Status s;
  int flag = -1;
  CHECK(MPI_Wait(q, &s) == MPI_SUCCESS);
  MPI_Test_cancelled(&s, &flag);
  return flag;
}

/* Sends `count` numbers from `value` on, takes them back, and tells the peer what became of them.
 * `is_alone`: no receive waits for them, so those that do not go at once have to come back. */
static void send_and_cancel(int count, int value, int is_synchronous, int is_alone, int to) {
  MPI_Request q;
  for (int i = 0; i < count; ++i) {
    sent[i] = value + i;
  }
  if (is_synchronous) {
    MPI_Issend(sent, count, MPI_INT, to, kFirstTag + value, MPI_COMM_WORLD, &q);
  } else {
    MPI_Isend(sent, count, MPI_INT, to, kFirstTag + value, MPI_COMM_WORLD, &q);
  }
  MPI_Cancel(&q);
  const int is_cancelled = wait_cancelled(&q);
  CHECK(is_cancelled || !is_ours || !is_alone || (!is_synchronous && count < kLong));
  MPI_Send(&is_cancelled, 1, MPI_INT, to, kWord, MPI_COMM_WORLD);
}

static void receive_unless_cancelled(int count, int value, int from) {
  int is_cancelled = -1, flag = -1;
  MPI_Recv(&is_cancelled, 1, MPI_INT, from, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!is_cancelled) {
    MPI_Recv(got, count, MPI_INT, from, kFirstTag + value, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got[0] == value && got[count - 1] == value + count - 1);
  }
  MPI_Iprobe(from, kFirstTag + value, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
}

/* The one that was taken back is not in the way of those after it. */
static void send_first_of_three(int to) {
  MPI_Request q[3];
  int values[3] = {1, 2, 3}, cancelled[3];
  for (int i = 0; i < 3; ++i) {
    MPI_Issend(&values[i], 1, MPI_INT, to, kTag, MPI_COMM_WORLD, &q[i]);
  }
  MPI_Cancel(&q[1]);
  cancelled[1] = wait_cancelled(&q[1]);
  CHECK(cancelled[1] || !is_ours);
  MPI_Send(&cancelled[1], 1, MPI_INT, to, kWord, MPI_COMM_WORLD);
  cancelled[0] = wait_cancelled(&q[0]);
  cancelled[2] = wait_cancelled(&q[2]);
  CHECK(!cancelled[0] && !cancelled[2]);
}

static void receive_first_of_three(int from) {
  int is_cancelled = -1, value = 0;
  MPI_Recv(&is_cancelled, 1, MPI_INT, from, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 1; i <= 3; ++i) {
    if (i != 2 || !is_cancelled) {
      MPI_Recv(&value, 1, MPI_INT, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(value == i);
    }
  }
}

/* A receive waits already: whoever is first. */
static void race(int is_sender, int peer) {
  for (int round = 0; round < 20; ++round) {
    MPI_Request q;
    int is_cancelled = -1;
    if (is_sender) {
      MPI_Recv(NULL, 0, MPI_INT, peer, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      send_and_cancel(round % 2 == 0 ? kLong - 1 : 10, round, round % 3 == 0, 0, peer);
      continue;
    }
    MPI_Irecv(got, kLong, MPI_INT, peer, kFirstTag + round, MPI_COMM_WORLD, &q);
    MPI_Send(NULL, 0, MPI_INT, peer, kWord, MPI_COMM_WORLD);
    MPI_Recv(&is_cancelled, 1, MPI_INT, peer, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_cancelled) {
      MPI_Cancel(&q);
    }
    CHECK(wait_cancelled(&q) == is_cancelled);
    CHECK(is_cancelled || got[0] == round);
  }
}

/* The same request again, after it was taken back. */
static void persist(int is_sender, int peer) {
  MPI_Request q;
  int value = 40, is_cancelled = -1;
  if (!is_sender) {
    MPI_Recv(&is_cancelled, 1, MPI_INT, peer, kWord, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!is_cancelled) {
      MPI_Recv(&value, 1, MPI_INT, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(value == 40);
    }
    MPI_Recv(&value, 1, MPI_INT, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == 41);
    return;
  }
  MPI_Ssend_init(&value, 1, MPI_INT, peer, kTag, MPI_COMM_WORLD, &q);
  MPI_Start(&q);
  MPI_Cancel(&q);
  is_cancelled = wait_cancelled(&q);
  CHECK(is_cancelled || !is_ours);
  MPI_Send(&is_cancelled, 1, MPI_INT, peer, kWord, MPI_COMM_WORLD);
  value = 41;
  MPI_Start(&q);
  CHECK(!wait_cancelled(&q));
  MPI_Request_free(&q);
}

/* To itself. */
static void alone(void) {
  MPI_Request q;
  int flag = -1, value = 7;
  MPI_Issend(&value, 1, MPI_INT, world_rank, kTag, MPI_COMM_WORLD, &q);
  MPI_Cancel(&q);
  flag = wait_cancelled(&q);
  CHECK(flag || !is_ours);
  if (!flag) {
    MPI_Recv(&value, 1, MPI_INT, world_rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Iprobe(world_rank, kTag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  begin(&argc, &argv);
  MPI_Get_library_version(version, &length);
  is_ours = strstr(version, "Sterna") != NULL;
  const int is_sender = world_rank % 2 == 0;
  const int peer = is_sender ? world_rank + 1 : world_rank - 1;
  const int counts[] = {1, 1000, kLong};
  if (is_ours) { /* Others wait for ever for a send to oneself that they cannot take back. */
    alone();
  }
  if (peer < world_size) {
    for (int i = 0; i < 6; ++i) {
      if (is_sender) {
        send_and_cancel(counts[i % 3], 100 * i, i < 3, 1, peer);
      } else {
        receive_unless_cancelled(counts[i % 3], 100 * i, peer);
      }
    }
    if (is_sender) {
      send_first_of_three(peer);
    } else {
      receive_first_of_three(peer);
    }
    race(is_sender, peer);
    persist(is_sender, peer);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return end();
}
