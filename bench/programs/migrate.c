/* A rank with much memory, sent as a message and moved. Prints medians, "NAME MICROSECONDS":
 *
 * usage: migrate BYTES returns MOVES   rank 0, on node 0, and rank 1 on node 1
 *   send          BYTES from rank 0 to rank 1, until its empty answer is back
 *   send_used     the same with all bytes written before, until the answer that rank 1 gives when it
 *                 has read them all
 *   send_fresh    as send, into memory that rank 1 has never touched
 *   move, touch   rank 0 is moved from outside, MOVES times: how long it was away; and until it has
 *                 looked at each page
 *   own, own_touch   the same, when it moves by itself, to and fro
 *   own_used      the same with all bytes written before, until it has read them all
 *   send_asleep, send_asleep_used, own_asleep, own_asleep_touch, own_asleep_used
 *                 the same after a pause in which the other node falls asleep; without, it polls still
 * usage: migrate BYTES fresh           send_fresh alone, of any two ranks
 * usage: migrate BYTES visits          9 nodes; rank 0 moves to each from node 2 on, where it never
 *                                      was: first, first_touch
 * usage: migrate BYTES orders MOVES    rank 0 is moved from outside, to where it never was:
 *                                      move, touch
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sterna/migrate.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"

enum { kSends = 15, kWarm = 3, kFreshSends = 5, kFreshWarm = 1, kMovesMax = 64 };
static const double kPause = 5e-3; /* Seconds: the other node falls asleep. */

static void pause_for(double seconds) {
  for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;) {
  }
}

static void write_all(char* memory, int bytes, int salt) {
  memset(memory, salt & 0x7F, bytes);
}

/* All bytes are read, and are those that write_all() wrote. */
static void read_all(const char* memory, int bytes, int salt) {
  const unsigned long word_expected = 0x0101010101010101UL * (unsigned long)(salt & 0x7F);
  unsigned long difference = 0;
  for (int i = 0; i + (int)sizeof(long) <= bytes; i += (int)sizeof(long)) {
    unsigned long word;
    memcpy(&word, memory + i, sizeof word);
    difference |= word ^ word_expected;
  }
  if (difference != 0) {
    fprintf(stderr, "migrate: the bytes are not those that were written\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* How often, and how. */
struct sends {
  int count, warm;
  double pause;
  int is_used; /* All is written before, and read by rank 1 before its answer. */
};
static const struct sends kAwake = {kSends, kWarm, 0, 0}, kAsleep = {kSends, kWarm, kPause, 0},
                          kAwakeUsed = {kSends, kWarm, 0, 1},
                          kAsleepUsed = {kSends, kWarm, kPause, 1},
                          kFresh = {kFreshSends, kFreshWarm, 0, 0};

/* Time until rank 1 has all the bytes: its answer is empty. */
static void measure_sends(const char* name, char* memory, int bytes, struct sends how) {
  double times[kSends];
  for (int i = -how.warm; i < how.count; ++i) {
    if (how.is_used) {
      write_all(memory, bytes, i);
    }
    pause_for(how.pause);
    const double begin = MPI_Wtime();
    MPI_Send(memory, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i >= 0) {
      times[i] = (MPI_Wtime() - begin) * 1e6;
    }
  }
  printf("%s %.2f\n", name, median(times, how.count));
}

static void answer_sends(char* memory, int bytes, struct sends how) {
  for (int i = -how.warm; i < how.count; ++i) {
    MPI_Recv(memory, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (how.is_used) {
      read_all(memory, bytes, i);
    }
    MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  }
}

static void answer_fresh(int bytes) {
  char* fresh[kFreshSends + kFreshWarm];
  for (int i = 0; i < kFreshSends + kFreshWarm; ++i) {
    fresh[i] = malloc(bytes); /* Kept until the end: none comes back as another. */
    if (fresh[i] == NULL) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Recv(fresh[i], bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
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
  fflush(stdout);
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

/* After the times are taken: a move that is none would be the fastest. */
static void check_moved(int status, pid_t* here) {
  const pid_t now = getpid();
  if (status != STERNA_SUCCESS || now == *here) {
    fprintf(stderr, "migrate: the rank has not moved\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  *here = now;
}

static pid_t begin_on_node_0(void) {
  while (sterna_migrate_to(0) != STERNA_SUCCESS) {
  }
  return getpid();
}

/* Without anybody who asks, nothing can be prepared: the whole handshake while the rank waits. */
static void measure_own_moves(const char* name, int moves, const char* memory, int bytes,
                              double pause) {
  double times[kMovesMax], touched[kMovesMax];
  const long expected = look_at(memory, bytes);
  pid_t here = begin_on_node_0();
  for (int i = -kWarm; i < moves; ++i) {
    pause_for(pause);
    const double begin = MPI_Wtime();
    const int status = sterna_migrate_to((i + kWarm + 1) % 2);
    const double end = MPI_Wtime();
    const long sum = look_at(memory, bytes);
    const double looked = MPI_Wtime();
    check_moved(status, &here);
    if (sum != expected) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (i >= 0) {
      times[i] = (end - begin) * 1e6;
      touched[i] = (looked - begin) * 1e6;
    }
  }
  printf("%s %.2f\n%s_touch %.2f\n", name, median(times, moves), name, median(touched, moves));
}

static void measure_used_moves(const char* name, int moves, char* memory, int bytes, double pause) {
  double times[kMovesMax];
  pid_t here = begin_on_node_0();
  for (int i = -kWarm; i < moves; ++i) {
    write_all(memory, bytes, i);
    pause_for(pause);
    const double begin = MPI_Wtime();
    const int status = sterna_migrate_to((i + kWarm + 1) % 2);
    read_all(memory, bytes, i);
    const double end = MPI_Wtime();
    check_moved(status, &here);
    if (i >= 0) {
      times[i] = (end - begin) * 1e6;
    }
  }
  printf("%s %.2f\n", name, median(times, moves));
}

/* What check_bytes() expects. */
static void fill(char* memory, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    memory[i] = (char)(i * 31 + i / 4096);
  }
}

static void check_bytes(const char* memory, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    if (memory[i] != (char)(i * 31 + i / 4096)) {
      fprintf(stderr, "migrate: byte %d is wrong after the moves\n", i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

/* Rank 0's part of "returns". */
static void run_returns(char* memory, int bytes, int moves) {
  measure_sends("send", memory, bytes, kAwake);
  measure_sends("send_asleep", memory, bytes, kAsleep);
  measure_sends("send_used", memory, bytes, kAwakeUsed);
  measure_sends("send_asleep_used", memory, bytes, kAsleepUsed);
  measure_sends("send_fresh", memory, bytes, kFresh);
  fill(memory, bytes);
  measure_own_moves("own", moves, memory, bytes, 0);
  measure_own_moves("own_asleep", moves, memory, bytes, kPause);
  measure_used_moves("own_used", moves, memory, bytes, 0);
  measure_used_moves("own_asleep_used", moves, memory, bytes, kPause);
  fill(memory, bytes);
  measure_moves(moves, memory, bytes);
}

static void answer_returns(char* memory, int bytes) {
  answer_sends(memory, bytes, kAwake);
  answer_sends(memory, bytes, kAsleep);
  answer_sends(memory, bytes, kAwakeUsed);
  answer_sends(memory, bytes, kAsleepUsed);
  answer_fresh(bytes);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int bytes = argc > 1 ? atoi(argv[1]) : 0, moves = argc > 3 ? atoi(argv[3]) : 0;
  const char* mode = argc > 2 ? argv[2] : "";
  const int is_returns = strcmp(mode, "returns") == 0, is_visits = strcmp(mode, "visits") == 0;
  const int is_fresh = strcmp(mode, "fresh") == 0, is_orders = strcmp(mode, "orders") == 0;
  if (bytes < 1 || moves < (is_returns || is_orders) || moves > kMovesMax ||
      !(is_returns || is_fresh || is_visits || is_orders)) {
    fprintf(stderr, "usage: migrate BYTES returns|fresh|visits|orders [MOVES]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char* memory = malloc(bytes);
  if (memory == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  fill(memory, bytes);
  if (!is_orders) {
    prefer_this_thread(); /* The worker of either node, and both nodes are where the moves go. */
  } /* Else other nodes prepare for the rank while it computes, perhaps on the same processor. */
  if (rank == 0) {
    if (is_returns) {
      run_returns(memory, bytes, moves);
    } else if (is_fresh) {
      measure_sends("send_fresh", memory, bytes, kFresh);
    } else if (is_visits) {
      measure_first_moves(memory, bytes);
    } else {
      measure_moves(moves, memory, bytes);
    }
    check_bytes(memory, bytes);
    MPI_Send(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
  } else if (rank == 1) {
    if (is_returns) {
      answer_returns(memory, bytes);
    } else if (is_fresh) {
      answer_fresh(bytes);
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  fflush(stdout);
  free(memory);
  MPI_Finalize();
  return 0;
}
