/* A rank with much memory, sent as a message and moved. Prints medians, "NAME MICROSECONDS":
 *
 * usage: migrate BYTES returns MOVES   rank 0, on node 0, and rank 1 on node 1
 *   send          BYTES from rank 0 to rank 1, until its empty answer is back
 *   send_asleep   the same to a node that has fallen asleep, as it has before each move of its own
 *   send_fresh    the same into memory that rank 1 has never touched
 *   move, touch   rank 0 is moved from outside, MOVES times: how long it was away; and until it has
 *                 looked at each page
 *   own, own_touch   the same, when it moves by itself, to and fro
 * usage: migrate BYTES visits          9 nodes; rank 0 moves to each from node 2 on, where it never
 *                                      was: first, first_touch
 * usage: migrate BYTES orders MOVES    rank 0 is moved from outside, to where it never was: move,
 * touch
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/migrate.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"

enum { kSends = 15, kWarm = 3, kFreshSends = 5, kFreshWarm = 1 };
static const double kPause = 5e-3; /* Seconds: the other node falls asleep. */

static void pause_for(double seconds) {
  for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;) {
  }
}

/* Time until rank 1 has all the bytes: its answer is empty. */
static double send_time(char* memory, int bytes, double pause, int sends, int warm) {
  double times[kSends];
  for (int i = -warm; i < sends; ++i) {
    pause_for(pause);
    const double begin = MPI_Wtime();
    MPI_Send(memory, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i >= 0) {
      times[i] = (MPI_Wtime() - begin) * 1e6;
    }
  }
  return median(times, sends);
}

static void answer(char* memory, int bytes) {
  MPI_Recv(memory, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static void measure_sends(char* memory, int bytes) {
  printf("send %.2f\n", send_time(memory, bytes, 0, kSends, kWarm));
  printf("send_asleep %.2f\n", send_time(memory, bytes, kPause, kSends, kWarm));
  printf("send_fresh %.2f\n", send_time(memory, bytes, 0, kFreshSends, kFreshWarm));
}

static void answer_sends(char* memory, int bytes) {
  for (int i = 0; i < 2 * (kSends + kWarm); ++i) {
    answer(memory, bytes);
  }
  char* fresh[kFreshSends + kFreshWarm];
  for (int i = 0; i < kFreshSends + kFreshWarm; ++i) {
    fresh[i] = malloc(bytes); /* Kept until the end: none comes back as another. */
    if (fresh[i] == NULL) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    answer(fresh[i], bytes);
  }
  for (int i = 0; i < kFreshSends + kFreshWarm; ++i) {
    free(fresh[i]);
  }
}

static long look_at(const volatile char* memory, int bytes) {
  long sum = 0;
  for (int i = 0; i < bytes; i += 4096) {
    sum += memory[i];
  }
  return sum;
}

/* A move shows as a call that comes back in another process. */
static void measure_moves(int moves, const char* memory, int bytes) {
  double* times = malloc(sizeof(double) * moves);
  double* touched = malloc(sizeof(double) * moves);
  if (times == NULL || touched == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const long expected = look_at(memory, bytes);
  const pid_t start = getpid();
  printf("ready %d\n", (int)start);
  fflush(stdout);
  pid_t here = start;
  for (int count = 0; count < moves;) {
    int is_there = 0;
    const double begin = MPI_Wtime();
    MPI_Iprobe(1, 3, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    const double end = MPI_Wtime();
    const pid_t now = getpid();
    if (now != here) {
      here = now;
      if (look_at(memory, bytes) != expected) {
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      touched[count] = (MPI_Wtime() - begin) * 1e6;
      times[count++] = (end - begin) * 1e6;
    }
  }
  printf("move %.2f\n", median(times, moves));
  printf("touch %.2f\n", median(touched, moves));
  free(touched);
  free(times);
}

/* The rank has never been where it goes. */
static void measure_first_moves(const char* memory, int bytes) {
  double times[64], touched[64];
  const long expected = look_at(memory, bytes);
  int count = 0;
  for (uint32_t node = 2; count < 64; ++node) {
    pause_for(kPause);
    const double begin = MPI_Wtime();
    const int status = sterna_migrate_to(node);
    const double end = MPI_Wtime();
    if (status == STERNA_INVALID_ARGUMENT) {
      break;  // There is no such node.
    }
    if (status != STERNA_SUCCESS || look_at(memory, bytes) != expected) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    touched[count] = (MPI_Wtime() - begin) * 1e6;
    times[count++] = (end - begin) * 1e6;
  }
  if (count > 0) {
    printf("first %.2f\n", median(times, count));
    printf("first_touch %.2f\n", median(touched, count));
  }
}

/* Without anybody who asks, nothing can be prepared: the whole handshake while the rank waits. It
 * pauses before each move until the other node has fallen asleep. */
static void measure_own_moves(int moves, const char* memory, int bytes) {
  double* times = malloc(sizeof(double) * moves);
  double* touched = malloc(sizeof(double) * moves);
  if (times == NULL || touched == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const long expected = look_at(memory, bytes);
  int node = 0;
  while (sterna_migrate_to(node) != STERNA_SUCCESS) {
  }
  for (int count = 0; count < moves; ++count) {
    pause_for(kPause);
    const double begin = MPI_Wtime();
    const int status = sterna_migrate_to(1 - node);
    const double end = MPI_Wtime();
    if (status != STERNA_SUCCESS || look_at(memory, bytes) != expected) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    touched[count] = (MPI_Wtime() - begin) * 1e6;
    times[count] = (end - begin) * 1e6;
    node = 1 - node;
  }
  printf("own %.2f\n", median(times, moves));
  printf("own_touch %.2f\n", median(touched, moves));
  free(touched);
  free(times);
}

static void check_bytes(const char* memory, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    if (memory[i] != (char)(i * 31 + i / 4096)) {
      fprintf(stderr, "migrate: byte %d is wrong after the moves\n", i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int bytes = argc > 1 ? atoi(argv[1]) : 0, moves = argc > 3 ? atoi(argv[3]) : 0;
  const char* mode = argc > 2 ? argv[2] : "";
  const int is_returns = strcmp(mode, "returns") == 0, is_visits = strcmp(mode, "visits") == 0;
  if (bytes < 1 || moves < (is_visits ? 0 : 1) ||
      !(is_returns || is_visits || strcmp(mode, "orders") == 0)) {
    fprintf(stderr, "usage: migrate BYTES returns|visits|orders [MOVES]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char* memory = malloc(bytes);
  if (memory == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < bytes; ++i) {
    memory[i] = (char)(i * 31 + i / 4096);
  }
  if (is_returns || is_visits) {
    prefer_this_thread(); /* The worker of either node, and both nodes are where the moves go. */
  } /* Else other nodes prepare for the rank while it computes, perhaps on the same processor. */
  if (rank == 0) {
    if (is_returns) {
      measure_sends(memory, bytes);
    }
    if (is_visits) {
      measure_first_moves(memory, bytes);
    } else {
      measure_moves(moves, memory, bytes);
    }
    if (is_returns) {
      measure_own_moves(moves, memory, bytes);
    }
    check_bytes(memory, bytes);
    MPI_Send(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
  } else if (rank == 1) {
    if (is_returns) {
      answer_sends(memory, bytes);
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  fflush(stdout);
  free(memory);
  MPI_Finalize();
  return 0;
}
