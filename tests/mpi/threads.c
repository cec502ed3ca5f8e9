/* Kernel threads of each rank that send, receive, wait and meet, each in a communicator of its own
 * and all in one. Their ranks end before the last one, which outlives what they were given. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

enum { kThreads = 4, kLong = 3000, kTurns = 30 };

static MPI_Comm comms[kThreads];
static int rounds = 4;

static void ring(int thread, int round) {
  const int left = (world_rank + world_size - 1) % world_size;
  const int right = (world_rank + 1) % world_size;
  int mine = world_rank + round + thread, theirs = -1;
  MPI_Status status;
  MPI_Sendrecv(&mine, 1, MPI_INT, right, thread, &theirs, 1, MPI_INT, left, thread, MPI_COMM_WORLD,
               &status);
  CHECK(theirs == left + round + thread && status.MPI_SOURCE == left);
  char out[kLong], in[kLong];
  MPI_Request requests[2];
  memset(out, thread + 1, sizeof out);
  MPI_Irecv(in, kLong, MPI_CHAR, MPI_ANY_SOURCE, 7, comms[thread], &requests[0]);
  MPI_Isend(out, round % 2 ? kLong : 10, MPI_CHAR, right, 7, comms[thread], &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(in[9] == thread + 1);
}

/* Along a line, whose ends have a neighbour on one side only; there and back. */
static void line(int thread, int round) {
  const int before = world_rank > 0 ? world_rank - 1 : MPI_PROC_NULL;
  const int after = world_rank < world_size - 1 ? world_rank + 1 : MPI_PROC_NULL;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int mine[2] = {world_rank + 100 * turn, round};
    int theirs[2] = {-1, -1};
    const int to = turn % 2 ? before : after, from = turn % 2 ? after : before;
    MPI_Status status;
    MPI_Sendrecv(mine, 2, MPI_INT, to, kThreads + thread, theirs, 2, MPI_INT, from,
                 kThreads + thread, MPI_COMM_WORLD, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_SOURCE == from && count == (from == MPI_PROC_NULL ? 0 : 2));
    CHECK(theirs[0] == (from == MPI_PROC_NULL ? -1 : from + 100 * turn));
  }
}

/* Between two neighbours, one message at a time; and several sends whose handles are one. */
static void pair(int thread) {
  const int partner = world_rank ^ 1;
  if (partner >= world_size) {
    return;
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    int value = turn + 1000 * thread;
    if (world_rank % 2 == turn % 2) {
      MPI_Send(&value, 1, MPI_INT, partner, 2 * kThreads + thread, MPI_COMM_WORLD);
    } else {
      value = -1;
      MPI_Recv(&value, 1, MPI_INT, turn % 3 ? partner : MPI_ANY_SOURCE, 2 * kThreads + thread,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(value == turn + 1000 * thread);
    }
  }
  MPI_Request sends[4], receives[4];
  int out[4] = {10, 11, 12, 13}, in[4] = {-1, -1, -1, -1}, index = -1, flag = 0;
  for (int i = 0; i < 4; ++i) {
    MPI_Irecv(&in[i], 1, MPI_INT, partner, 8, comms[thread], &receives[i]);
  }
  for (int i = 0; i < 4; ++i) {
    MPI_Isend(&out[i], 1, MPI_INT, partner, 8, comms[thread], &sends[i]);
  }
  MPI_Request_free(&sends[3]);
  MPI_Waitany(3, sends, &index, MPI_STATUS_IGNORE);
  CHECK(index >= 0 && index < 3 && sends[index] == MPI_REQUEST_NULL);
  while (!flag) {
    MPI_Testall(4, sends, &flag, MPI_STATUSES_IGNORE);
  }
  MPI_Waitall(4, receives, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 4; ++i) {
    CHECK(in[i] == 10 + i && receives[i] == MPI_REQUEST_NULL);
  }
}

static void meet(int thread, int round) {
  MPI_Comm comm = comms[thread];
  int mine = world_rank + round, sum = -1, root = world_rank == round % world_size ? round : -1;
  MPI_Request request;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == world_size * (world_size - 1) / 2 + world_size * round);
  MPI_Bcast(&root, 1, MPI_INT, round % world_size, comm);
  CHECK(root == round);
  MPI_Ibarrier(comm, &request);
  MPI_Barrier(comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void* run(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (int round = 0; round < rounds; ++round) {
    ring(thread, round);
    line(thread, round);
    pair(thread);
    meet(thread, round);
  }
  return NULL;
}

/* A collective that one thread starts is advanced by another that waits for something else, though
 * it began to wait first, and nobody waits for the collective itself. */
static MPI_Request started;

static void* start_late(void* unused) {
  usleep(20000); /* So that the main thread waits: what is true does not depend on it. */
  MPI_Ibarrier(comms[1], &started);
  return unused;
}

static void start_beside(int meets) {
  int token = world_rank;
  pthread_t starter;
  if (world_rank == 0) {
    pthread_create(&starter, NULL, start_late, NULL);
  } else {
    usleep(world_rank % 2 ? 0 : 40000);
    MPI_Ibarrier(comms[1], &started);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
  }
  if (meets) {
    MPI_Barrier(comms[0]);
  } else if (world_rank == 1) {
    MPI_Send(&token, 1, MPI_INT, 0, 9, comms[0]);
  } else if (world_rank == 0 && world_size > 1) {
    MPI_Recv(&token, 1, MPI_INT, 1, 9, comms[0], MPI_STATUS_IGNORE);
    CHECK(token == 1);
  }
  if (world_rank == 0) {
    pthread_join(starter, NULL);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  pthread_t threads[kThreads];
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  rounds = world_size > 4 ? 2 : rounds;
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  start_beside(0);
  start_beside(1);
  for (int i = 1; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, run, (void*)(intptr_t)i);
  }
  run(NULL);
  for (int i = 1; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_free(&comms[i]);
  }
  const int result = end();
  if (world_rank == world_size - 1) {
    usleep(50000); /* Nothing that the threads of others have left behind is needed now. */
  }
  return result;
}
