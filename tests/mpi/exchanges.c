/* Pairs of ranks that send each other as much at the same time and wait at once, in the three ways in
 * which programs write that: what comes is what was sent. With "quiet", of two processes that each
 * have a processor: who waits at once moves its messages itself, and the thread that would in its
 * place while it computes sleeps, but for a look each four milliseconds. To wake it for each call took
 * a peer its processor, and the exchange twice as long. */
#define _GNU_SOURCE
#include <dirent.h>

#include "check.h"

enum { kBytesMax = 1 << 20, kWays = 3 };

static unsigned char *out, *in;
static int peer;

static void exchange(int way, int bytes) {
  MPI_Request requests[2];
  switch (way) {
    case 0:
      MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      break;
    case 1:
      MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 1, in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Recv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      break;
  }
}

static unsigned char byte_of(int rank, int round, int at) {
  return (unsigned char)(rank * 31 + round * 7 + at);
}

static void check_exchange(int way, int bytes, int round) {
  for (int i = 0; i < bytes; i += 61) {
    out[i] = byte_of(world_rank, round, i);
    in[i] = (unsigned char)~byte_of(peer, round, i);
  }
  exchange(way, bytes);
  int wrong = 0;
  for (int i = 0; i < bytes; i += 61) {
    wrong += in[i] != byte_of(peer, round, i);
  }
  CHECK(wrong == 0);
}

/* How often the thread that progresses in the place of the program has slept; -1: there is none. */
static long sleeps_of_thread(void) {
  long sleeps = -1;
  DIR* const tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  for (struct dirent* task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    char path[300], line[128], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE* const status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      (void)sscanf(line, "Name: %31s", name);
      if (strcmp(name, "sterna-back") == 0) {
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
      }
    }
    if (status != NULL) {
      fclose(status);
    }
  }
  if (tasks != NULL) {
    closedir(tasks);
  }
  return sleeps;
}

/* Whether it sleeps as long as messages are exchanged. */
static int is_quiet(int way) {
  enum { kExchanges = 600 };
  for (int i = 0; i < 20; ++i) {
    exchange(way, kBytesMax);
  }
  const long before = sleeps_of_thread();
  const double begin = MPI_Wtime();
  for (int i = 0; i < kExchanges; ++i) {
    exchange(way, kBytesMax);
  }
  const long sleeps = sleeps_of_thread() - before;
  CHECK(before != -1 || way == 1);
  /* In 90 ms 110 to 220 times while each call woke it. Each look is two sleeps. */
  return (double)sleeps < kExchanges / 10 + (MPI_Wtime() - begin) * 500;
}

/* Beside others who want the processors, who waits at once may seem to compute, and wakes it, for a
 * while; while each call woke it, all times were like that. */
static void check_quiet(int way) {
  enum { kTimes = 6 };
  int is_any_quiet = 0;
  for (int i = 0; i < kTimes; ++i) {
    is_any_quiet |= is_quiet(way);
  }
  CHECK(is_any_quiet);
}

int main(int argc, char** argv) {
  static const int kSizes[] = {1, 8192, 40000, 65536, 262144, kBytesMax};
  begin(&argc, &argv);
  out = malloc(kBytesMax);
  in = malloc(kBytesMax);
  peer = world_rank ^ 1;
  const int must_be_quiet = argc > 1 && strcmp(argv[1], "quiet") == 0;
  for (int way = 0; way < kWays && peer < world_size; ++way) {
    for (int size = 0; size < (int)(sizeof kSizes / sizeof kSizes[0]); ++size) {
      for (int round = 0; round < 6; ++round) {
        check_exchange(way, kSizes[size], round);
      }
    }
    if (must_be_quiet) {
      check_quiet(way);
    }
  }
  free(in);
  free(out);
  return end();
}
