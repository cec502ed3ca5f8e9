/* A second kernel thread that begins to call while the first one, which was alone until then, is in
 * the middle of something that ends only when the second one has called: a receive, a probe, a
 * large send, a computation, a function of its own, a collective. Each way needs a process that has
 * had one caller so far; the argument names it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { kLarge = 3 << 20, kRounds = 50, kShort = 8 };

static int left, right;
static long first_thread;
static MPI_Comm comms[2]; /* Of the first thread, of the second one. */
static atomic_int has_begun, is_done;
static char *outgoing, *incoming;
static MPI_Request plain[2 * kShort];
static int plain_in[kShort], plain_out[kShort];

/* So that the first one waits, not is about to: what is true does not depend on it. */
static void await_sleep(void) {
  char name[64], line[256], state = 0;
  snprintf(name, sizeof name, "/proc/self/task/%ld/stat", first_thread);
  for (int look = 0; look < 2000 && state != 'S'; ++look) {
    FILE* file = fopen(name, "r");
    if (file == NULL) {
      return;
    }
    if (fgets(line, sizeof line, file) != NULL && strrchr(line, ')') != NULL) {
      state = strrchr(line, ')')[2];
    }
    fclose(file);
    usleep(100);
  }
}

/* In the code of the program: no call of MPI but for the time. */
static void await(atomic_int* flag) {
  const double begin = MPI_Wtime();
  while (!atomic_load(flag) && MPI_Wtime() - begin < 150) {
    usleep(100);
  }
  CHECK(atomic_load(flag));
}

static void ring(MPI_Comm comm, int round) {
  int mine = world_rank + round, theirs = -1, sum = -1;
  MPI_Request requests[2];
  MPI_Sendrecv(&mine, 1, MPI_INT, right, 3, &theirs, 1, MPI_INT, left, 3, comm, MPI_STATUS_IGNORE);
  CHECK(theirs == left + round);
  theirs = -1;
  MPI_Irecv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, &requests[0]);
  MPI_Isend(&mine, 1, MPI_INT, right, 4, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(theirs == left + round);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == world_size * (world_size - 1) / 2 + world_size * round);
}

static void talk(MPI_Comm comm) {
  for (int round = 0; round < kRounds; ++round) {
    ring(comm, round);
  }
}

static void fill(char* bytes, int seed) {
  for (int i = 0; i < kLarge; ++i) {
    bytes[i] = (char)(i * 7 + seed);
  }
}

static int is_filled(const char* bytes, int seed) {
  for (int i = 0; i < kLarge; ++i) {
    if (bytes[i] != (char)(i * 7 + seed)) {
      return 0;
    }
  }
  return 1;
}

/* --- What the first one does. The second one has the same name with "second_". ---------------- */

static void first_begin(void) {
  atomic_store(&has_begun, 1);
}
static void second_begin(void) {
  ring(comms[1], 0);
}

static void first_receive(void) {
  int token = -1;
  atomic_store(&has_begun, 1);
  MPI_Recv(&token, 1, MPI_INT, left, 1, comms[0], MPI_STATUS_IGNORE);
  CHECK(token == left);
}
static void second_receive(void) {
  await_sleep();
  ring(comms[1], 0);
  MPI_Send(&world_rank, 1, MPI_INT, right, 1, comms[0]);
}

static void first_probe(void) {
  int token = -1;
  MPI_Status status;
  atomic_store(&has_begun, 1);
  MPI_Probe(MPI_ANY_SOURCE, 1, comms[0], &status);
  CHECK(status.MPI_SOURCE == left);
  MPI_Recv(&token, 1, MPI_INT, status.MPI_SOURCE, 1, comms[0], MPI_STATUS_IGNORE);
  CHECK(token == left);
}

static void first_test(void) {
  int token = -1, flag = 0;
  MPI_Request request;
  atomic_store(&has_begun, 1);
  MPI_Irecv(&token, 1, MPI_INT, left, 1, comms[0], &request);
  while (!flag) {
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  CHECK(token == left);
}

static void first_large(void) {
  fill(outgoing, world_rank);
  atomic_store(&has_begun, 1);
  MPI_Send(outgoing, kLarge, MPI_CHAR, right, 1, comms[0]);
}
static void second_large(void) {
  await_sleep();
  ring(comms[1], 0);
  MPI_Recv(incoming, kLarge, MPI_CHAR, left, 1, comms[0], MPI_STATUS_IGNORE);
  CHECK(is_filled(incoming, left));
}

/* With large messages open, which another thread moves on meanwhile. */
static void first_compute(void) {
  MPI_Request requests[2];
  fill(outgoing, world_rank);
  MPI_Irecv(incoming, kLarge, MPI_CHAR, left, 1, comms[0], &requests[0]);
  MPI_Isend(outgoing, kLarge, MPI_CHAR, right, 1, comms[0], &requests[1]);
  atomic_store(&has_begun, 1);
  await(&is_done);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(is_filled(incoming, left));
}
static void second_compute(void) {
  ring(comms[1], 0);
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  ring(comms[0], 1); /* The first one again, in its own function. */
  atomic_store(&has_begun, 1);
  await(&is_done);
  for (int i = 0; i < *count; ++i) {
    ((int*)inout)[i] += ((int*)in)[i];
  }
}
static void first_function(void) {
  int one = 1, two = 2;
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Reduce_local(&one, &two, 1, MPI_INT, op);
  CHECK(two == 3);
  MPI_Op_free(&op);
}

/* One that cannot end yet is open while the first one waits for something else. */
static void first_collective(void) {
  MPI_Request request;
  int token = -1;
  if (world_rank != 0) {
    MPI_Ibarrier(comms[0], &request);
  }
  atomic_store(&has_begun, 1);
  MPI_Recv(&token, 1, MPI_INT, left, 1, comms[0], MPI_STATUS_IGNORE);
  CHECK(token == left);
  if (world_rank == 0) {
    MPI_Ibarrier(comms[0], &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void second_collective(void) {
  MPI_Request request;
  await_sleep();
  MPI_Ibarrier(comms[1], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Send(&world_rank, 1, MPI_INT, right, 1, comms[0]);
}

/* The second one ends what the first one has begun. */
static void first_requests(void) {
  for (int i = 0; i < kShort; ++i) {
    MPI_Irecv(&plain_in[i], 1, MPI_INT, left, 10 + i, comms[0], &plain[2 * i]);
    plain_out[i] = 100 * world_rank + i;
    MPI_Isend(&plain_out[i], 1, MPI_INT, right, 10 + i, comms[0], &plain[2 * i + 1]);
  }
  atomic_store(&has_begun, 1);
}
static void second_requests(void) {
  MPI_Waitall(2 * kShort, plain, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kShort; ++i) {
    CHECK(plain_in[i] == 100 * left + i);
  }
}

static const struct {
  const char* name;
  void (*first)(void);
  void (*second)(void);
} ways[] = {{"begin", first_begin, second_begin},
            {"receive", first_receive, second_receive},
            {"probe", first_probe, second_receive},
            {"test", first_test, second_receive},
            {"large", first_large, second_large},
            {"compute", first_compute, second_compute},
            {"function", first_function, second_begin},
            {"collective", first_collective, second_collective},
            {"requests", first_requests, second_requests}};
static int way;

static void* run_second(void* unused) {
  await(&has_begun);
  ways[way].second();
  atomic_store(&is_done, 1);
  talk(comms[1]);
  return unused;
}

int main(int argc, char** argv) {
  int level = 0;
  pthread_t second;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK(level == MPI_THREAD_MULTIPLE);
  left = (world_rank + world_size - 1) % world_size;
  right = (world_rank + 1) % world_size;
  first_thread = syscall(SYS_gettid);
  for (int i = 0; argc > 1 && i < (int)(sizeof ways / sizeof *ways); ++i) {
    if (strcmp(argv[1], ways[i].name) == 0) {
      way = i;
    }
  }
  CHECK(argc < 2 || strcmp(argv[1], ways[way].name) == 0);
  outgoing = malloc(kLarge);
  incoming = malloc(kLarge);
  CHECK(outgoing != NULL && incoming != NULL);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  CHECK(pthread_create(&second, NULL, run_second, NULL) == 0);
  talk(comms[0]);
  ways[way].first();
  talk(comms[0]);
  pthread_join(second, NULL);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_free(&comms[i]);
  }
  free(outgoing);
  free(incoming);
  return end();
}
