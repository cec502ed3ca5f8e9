/* A rank with much memory, sent as a message and moved: rank 0 sends BYTES to rank 1 on the other
 * node, several times; then it waits to be moved from outside, MOVES times, and measures how long
 * it was away, and then how long it takes to look at each page; then it moves by itself as often.
 * Prints "send MICROSECONDS", "send_asleep" (the same to a node that has fallen asleep, as it has
 * before each move of its own), "move MICROSECONDS" and "touch MICROSECONDS" (move and look), "own"
 * and "own_touch" for the moves of its own, medians. With MOVES 0, and more than two nodes: it
 * moves to each node from the third on, where it never was; prints "first" and "first_touch".
 *
 * usage: migrate BYTES MOVES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/migrate.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"

enum { kSends = 15, kWarm = 3 };
static const double kPause = 5e-3; /* Seconds: the other node falls asleep. */

static void pause_for(double seconds) {
  for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;) {
  }
}

/* Time until rank 1 has all the bytes: its answer is empty. */
static double send_time(char* memory, int bytes, double pause) {
  double times[kSends];
  for (int i = -kWarm; i < kSends; ++i) {
    pause_for(pause);
    const double begin = MPI_Wtime();
    MPI_Send(memory, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i >= 0) {
      times[i] = (MPI_Wtime() - begin) * 1e6;
    }
  }
  return median(times, kSends);
}

static void answer(char* memory, int bytes) {
  for (int i = -kWarm; i < kSends; ++i) {
    MPI_Recv(memory, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
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

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int bytes = argc > 1 ? atoi(argv[1]) : 0, moves = argc > 2 ? atoi(argv[2]) : 0;
  if (bytes < 1 || moves < 0) {
    fprintf(stderr, "usage: migrate BYTES MOVES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char* memory = malloc(bytes);
  if (memory == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < bytes; ++i) {
    memory[i] = (char)(i * 31 + i / 4096);
  }
  prefer_this_thread(); /* The worker of either node, and both nodes are where the moves go. */
  if (rank == 0 && moves == 0) {
    measure_first_moves(memory, bytes);
    MPI_Send(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
  } else if (rank == 0) {
    printf("send %.2f\n", send_time(memory, bytes, 0));
    printf("send_asleep %.2f\n", send_time(memory, bytes, kPause));
    measure_moves(moves, memory, bytes);
    measure_own_moves(moves, memory, bytes);
    for (int i = 0; i < bytes; ++i) {
      if (memory[i] != (char)(i * 31 + i / 4096)) {
        fprintf(stderr, "migrate: byte %d is wrong after the moves\n", i);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    MPI_Send(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
  } else if (rank == 1) {
    if (moves > 0) {
      answer(memory, bytes);
      answer(memory, bytes);
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  fflush(stdout);
  free(memory);
  MPI_Finalize();
  return 0;
}
