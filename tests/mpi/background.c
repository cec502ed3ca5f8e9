/* Large messages go on while the program of a process computes. With "background", between the
 * first two of two or three processes, which have a processor each, and with "crowded", where they
 * share one: neither side of a message calls
 * MPI before the other one has said, through memory that they share, that it is done. Without it
 * would never be. The same for a collective of two rounds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 3 << 20, kRounds = 5 };

static atomic_int* done; /* How many messages have ended at the side that waits. */
static char *outgoing, *incoming;
static MPI_Comm pair; /* The first two. */

/* A program that computes: it makes no call. Ends by itself when it has lasted far too long. */
static int compute_until(int count) {
  const double begin = MPI_Wtime();
  while (atomic_load(done) < count) {
    if (MPI_Wtime() - begin > 40) {
      return 0;
    }
  }
  return 1;
}

static void compute_for(double seconds) {
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < seconds) {
  }
}

static void share_memory(void) {
  /* Both have one parent. Tests that run beside this one look for names with "sterna" in them. */
  char name[64];
  snprintf(name, sizeof name, "/test-background-%d", (int)getppid());
  const int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
  CHECK(fd >= 0 && ftruncate(fd, sizeof *done) == 0);
  done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(done != MAP_FAILED);
  MPI_Barrier(MPI_COMM_WORLD);
  shm_unlink(name);
  close(fd);
}

static void fill(char* bytes, int round) {
  for (int i = 0; i < kBytes; ++i) {
    bytes[i] = (char)(i * 7 + round);
  }
}

static int is_filled(const char* bytes, int round) {
  for (int i = 0; i < kBytes; ++i) {
    if (bytes[i] != (char)(i * 7 + round)) {
      return 0;
    }
  }
  return 1;
}

/* `computes`: which rank; -1: none. The other waits for its part as usual, then says so. */
static void exchange(int sender, int computes, int round) {
  MPI_Request request;
  const int peer = !world_rank;
  char token = 0;
  if (world_rank == sender) {
    fill(outgoing, round);
    MPI_Isend(outgoing, kBytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
  } else {
    memset(incoming, 0, kBytes);
    MPI_Irecv(incoming, kBytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
  }
  if (world_rank == computes) {
    CHECK(compute_until(round));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (computes >= 0) {
      atomic_store(done, round);
    }
  }
  if (world_rank != sender) {
    CHECK(is_filled(incoming, round));
  }
  MPI_Sendrecv_replace(&token, 1, MPI_CHAR, peer, 2, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Of several rounds, of which a rank begins the second when it has the first one's message. */
static void reduce(int computes, int round, MPI_Op op) {
  enum { kCount = kBytes / (int)sizeof(int) };
  int* const mine = (int*)outgoing;
  int* const sum = (int*)incoming;
  MPI_Request request;
  for (int i = 0; i < kCount; ++i) {
    mine[i] = i + world_rank + round;
    sum[i] = 0;
  }
  MPI_Iallreduce(mine, sum, kCount, MPI_INT, op, pair, &request);
  if (world_rank == computes) {
    CHECK(op != MPI_SUM || compute_until(round)); /* A function of ours waits for our calls. */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    atomic_store(done, round);
  }
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    wrong += sum[i] != 2 * (i + round) + 1;
  }
  CHECK(wrong == 0);
  MPI_Barrier(pair);
}

static pthread_t program;

static void add_in_program(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  CHECK(pthread_equal(pthread_self(), program));
  for (int i = 0; i < *count; ++i) {
    ((int*)inout)[i] += ((int*)in)[i];
  }
}

static void reduce_meanwhile(int round) {
  MPI_Op add;
  program = pthread_self();
  MPI_Op_create(add_in_program, 1, &add);
  for (int i = 0; i < kRounds; ++i) {
    reduce(i & 1, round + i, MPI_SUM);
    reduce(i & 1, round + i, add);
  }
  MPI_Op_free(&add);
}

/* Short calls between two computations, with a large receive open all the time. */
static void talk_meanwhile(void) {
  MPI_Request request;
  const int peer = !world_rank;
  if (world_rank == 1) {
    MPI_Irecv(incoming, kBytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
  }
  for (int i = 0; i < 2000; ++i) {
    int word = i;
    MPI_Sendrecv_replace(&word, 1, MPI_INT, peer, 3, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(word == i);
    if (world_rank == 0 && i == 1000) {
      fill(outgoing, 99);
      MPI_Isend(outgoing, kBytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
    }
    if (world_rank == 0 && i == 1500) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  if (world_rank == 1) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(is_filled(incoming, 99));
  }
}

/* Who has waited at once for some messages computes after the next one. */
static void wait_and_compute(int first_round) {
  for (int round = first_round; round < first_round + 4 * kRounds; ++round) {
    for (int i = 0; i < 4; ++i) {
      exchange(round & 1, -1, round);
    }
    exchange(round & 1, (round >> 1) & 1, round);
  }
}

/* Who has computed for less than a message takes, some times, computes until all of the next one has
 * gone: what was left for when it is back must not wait for that. */
static void compute_and_compute_longer(int first_round) {
  for (int round = first_round; round < first_round + 2 * kRounds; ++round) {
    const int sender = round & 1;
    for (int i = 0; i < 3; ++i) {
      MPI_Request request;
      char token = 0;
      if (world_rank == sender) {
        fill(outgoing, round + i);
        MPI_Isend(outgoing, kBytes, MPI_CHAR, !sender, 1, MPI_COMM_WORLD, &request);
        compute_for(40e-6);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(incoming, kBytes, MPI_CHAR, sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(incoming, round + i));
      }
      MPI_Sendrecv_replace(&token, 1, MPI_CHAR, !world_rank, 2, !world_rank, 2, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
    }
    exchange(sender, sender, round);
  }
}

/* Who has sent computes: what the network had no room for, as its receiver did not look yet, leaves
 * meanwhile. */
static void send_and_compute(int first_round) {
  static const struct {
    int bytes, count;
  } all[] = {{8, 900}, {3000, 200}, {60000, 10}, {250000, 1}, {kBytes, 1}};
  const int peer = !world_rank;
  for (int i = 0; i < 2 * (int)(sizeof all / sizeof all[0]); ++i) {
    const int bytes = all[i / 2].bytes;
    const int is_sender = world_rank == i % 2;
    for (int k = 0; k < 24; ++k) { /* To and fro, so that it is known that they are expected. */
      if (k % 2 == is_sender) {
        MPI_Send(outgoing, bytes, MPI_CHAR, peer, 4, MPI_COMM_WORLD);
      } else {
        MPI_Recv(incoming, bytes, MPI_CHAR, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    fill(outgoing, i);
    memset(incoming, 0, kBytes);
    MPI_Barrier(pair);
    if (is_sender) {
      for (int k = 0; k < all[i / 2].count; ++k) {
        MPI_Send(outgoing, bytes, MPI_CHAR, peer, 5, MPI_COMM_WORLD);
      }
      CHECK(compute_until(first_round + i));
    } else {
      compute_for(20e-3);
      for (int k = 0; k < all[i / 2].count; ++k) {
        memset(incoming, 0, bytes);
        MPI_Recv(incoming, bytes, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      atomic_store(done, first_round + i);
      int wrong = 0;
      for (int k = 0; k < bytes; ++k) {
        wrong += incoming[k] != (char)(k * 7 + i);
      }
      CHECK(wrong == 0);
    }
    MPI_Barrier(pair);
  }
}

static double cpu_seconds(clockid_t clock) {
  struct timespec now;
  CHECK(clock_gettime(clock, &now) == 0);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Beside a message that nobody receives for long our thread uses little of the processor. */
static void compute_beside_one_that_stays(int round) {
  MPI_Request request;
  if (world_rank == 1) {
    while (atomic_load(done) < round) {
      usleep(1000);
    }
    MPI_Recv(incoming, kBytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    const double process = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double program = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    MPI_Isend(outgoing, kBytes, MPI_CHAR, 1, 6, MPI_COMM_WORLD, &request);
    compute_for(0.5);
    const double own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - program;
    const double others = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - process - own;
    CHECK(others < own / 10);
    atomic_store(done, round);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(pair);
}

/* From then on the process has several threads that call. */
static void* call_once(void* unused) {
  int flag = 1;
  MPI_Is_thread_main(&flag);
  CHECK(!flag);
  return unused;
}

/* Of this process and of the others: the same. */
static void take_one_processor(void) {
  cpu_set_t set;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &set)) {
    ++first;
  }
  CPU_ZERO(&set);
  CPU_SET(first, &set);
  CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

int main(int argc, char** argv) {
  int level = 0;
  pthread_t second;
  const int has_second = argc > 2 && strcmp(argv[2], "threads") == 0;
  const int is_crowded = argc > 1 && strcmp(argv[1], "crowded") == 0;
  if (is_crowded) {
    take_one_processor();
  }
  const int is_multiple = has_second || (argc > 2 && strcmp(argv[2], "multiple") == 0);
  MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (has_second) {
    CHECK(pthread_create(&second, NULL, call_once, NULL) == 0 && pthread_join(second, NULL) == 0);
  }
  cpu_set_t set;
  const int has_processors = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
  const int is_asked =
      is_crowded || (argc > 1 && strcmp(argv[1], "background") == 0 && has_processors);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2, world_rank, &pair);
  if (is_asked && world_size == 3 && world_rank == 2) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (is_asked && (world_size == 2 || world_size == 3)) {
    outgoing = malloc(kBytes);
    incoming = malloc(kBytes);
    CHECK(outgoing != NULL && incoming != NULL);
    share_memory();
    for (int round = 1; round <= 4 * kRounds; ++round) {
      exchange(round & 1, (round >> 1) & 1, round);
    }
    talk_meanwhile();
    reduce_meanwhile(4 * kRounds + 1);
    wait_and_compute(7 * kRounds + 1);
    compute_and_compute_longer(11 * kRounds + 1);
    send_and_compute(13 * kRounds + 1);
    compute_beside_one_that_stays(16 * kRounds);
    free(outgoing);
    free(incoming);
  }
  MPI_Comm_free(&pair);
  return end();
}
