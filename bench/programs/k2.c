/* Kernel K2 of paper 000 over processes, as its table 7: rows in blocks, one a process, columns in
 * as many parts as a process has threads; before each sweep every thread sends its part of the
 * first row to the process above, by a call without an answer. Prints "k2.THREADS SECONDS" for each
 * number of threads: the median of so many runs.
 *
 * usage: k2 RUNS SWEEPS THREADS...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.h"
#include "sterna/message.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"
#include "timing.h"

enum { kThreadsMax = 16 };

/* Two sweeps of rows from below may be here; who sends them waits for the credit. */
static double slots[2][K2_SIDE];
static sterna_semaphore filled[kThreadsMax], credit[kThreadsMax];
static double array[K2_SIDE * K2_SIDE], expected[K2_SIDE * K2_SIDE];
static int sweeps, threads;
static uint32_t me, count;

static void check(sterna_status status, const char* what) {
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "k2: %s: %s\n", what, sterna_status_text(status));
    exit(1);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static kernel_block block_of(int thread) {
  const kernel_block rows = kernel_cut(K2_SIDE, (int)count, 1, (int)me);
  kernel_block block = kernel_cut(K2_SIDE, 1, threads, thread);
  block.row = rows.row;
  block.row_end = rows.row_end;
  return block;
}

typedef struct {
  int thread, sweep;
  double values[K2_SIDE];
} row_part;

static sterna_status take_row(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  const row_part* const part = sterna_rpc_arguments(request, &bytes);
  const kernel_block block = block_of(part->thread);
  (void)context;
  memcpy(slots[part->sweep % 2] + block.column, part->values,
         (size_t)(block.column_end - block.column) * sizeof(double));
  return sterna_semaphore_release(&filled[part->thread], 1);
}

static sterna_status give_credit(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  (void)context;
  return sterna_semaphore_release(&credit[*(const int*)sterna_rpc_arguments(request, &bytes)], 1);
}

static void send_row(int thread, int sweep, kernel_block block) {
  row_part part = {thread, sweep, {0}};
  const size_t bytes = (size_t)(block.column_end - block.column) * sizeof(double);
  memcpy(part.values, array + block.row * K2_SIDE + block.column, bytes);
  check(sterna_semaphore_acquire(&credit[thread], STERNA_FOREVER), "credit");
  check(sterna_rpc_post(me - 1, "row", &part, offsetof(row_part, values) + bytes), "row");
}

static void run(void* argument) {
  const int thread = (int)(intptr_t)argument;
  const kernel_block block = block_of(thread);
  const double* const last = array + (K2_SIDE - 1) * K2_SIDE;
  double below[K2_SIDE];
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const double* source = last; /* Under the last row of all lies itself. */
    if (me > 0) {
      send_row(thread, sweep, block);
    }
    if (me + 1 < count) {
      check(sterna_semaphore_acquire(&filled[thread], STERNA_FOREVER), "a row from below");
      source = slots[sweep % 2];
    }
    memcpy(below + block.column, source + block.column,
           (size_t)(block.column_end - block.column) * sizeof(double));
    if (me + 1 < count) {
      check(sterna_rpc_post(me + 1, "credit", &thread, sizeof thread), "credit");
    }
    k2_sweep(array, below, block);
  }
}

static void fill(double* of) {
  for (int i = 0; i < K2_SIDE * K2_SIDE; ++i) {
    of[i] = 0.1 + 0.8 * (double)((long)i * 7919 % (K2_SIDE * K2_SIDE)) / (K2_SIDE * K2_SIDE);
  }
}

static void meet(void) {
  check(sterna_rpc_multicast(NULL, count, "meet", NULL, 0, NULL, 0, NULL, STERNA_FOREVER), "meet");
}

static sterna_semaphore met;
static sterna_status come(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  return sterna_semaphore_release(&met, 1);
}

/* All have called it. */
static void wait_for_all(void) {
  meet();
  for (uint32_t i = 0; i < count; ++i) {
    check(sterna_semaphore_acquire(&met, STERNA_FOREVER), "all");
  }
}

static double seconds_of(int thread_count) {
  sterna_thread* started[kThreadsMax];
  threads = thread_count;
  fill(array);
  for (int i = 0; i < threads; ++i) {
    check(sterna_semaphore_init(&filled[i], 0), "init");
    check(sterna_semaphore_init(&credit[i], 2), "init");
  }
  wait_for_all();
  const double begin = now();
  for (int i = 0; i < threads; ++i) {
    check(sterna_thread_create(NULL, run, (void*)(intptr_t)i, &started[i]), "a thread");
  }
  for (int i = 0; i < threads; ++i) {
    check(sterna_thread_join(started[i]), "join");
  }
  wait_for_all();
  const double seconds = now() - begin;
  const kernel_block rows = block_of(0);
  if (memcmp(array + rows.row * K2_SIDE, expected + rows.row * K2_SIDE,
             (size_t)(rows.row_end - rows.row) * K2_SIDE * sizeof(double)) != 0) {
    fprintf(stderr, "k2: %d threads compute something else\n", threads);
    exit(1);
  }
  return seconds;
}

static void compute_expected(void) {
  const kernel_block whole = {0, K2_SIDE, 0, K2_SIDE};
  double below[K2_SIDE];
  fill(expected);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    memcpy(below, expected + (K2_SIDE - 1) * K2_SIDE, sizeof below);
    k2_sweep(expected, below, whole);
  }
}

int main(int argc, char** argv) {
  const int runs = argc > 3 ? atoi(argv[1]) : 0;
  double* const times = malloc(sizeof(double) * (size_t)(runs + 1) * (size_t)argc);
  if (runs < 1 || times == NULL) {
    fprintf(stderr, "usage: k2 RUNS SWEEPS THREADS...\n");
    return 2;
  }
  sweeps = atoi(argv[2]);
  check(sterna_rpc_register("row", STERNA_RPC_QUICK, take_row, NULL), "row");
  check(sterna_rpc_register("credit", STERNA_RPC_QUICK, give_credit, NULL), "credit");
  check(sterna_rpc_register("meet", STERNA_RPC_QUICK, come, NULL), "meet");
  check(sterna_start(NULL), "start");
  me = sterna_node_index();
  count = sterna_node_count();
  compute_expected();
  for (int left = 0; left < runs; ++left) { /* In turn, so that noise hits all. */
    for (int i = 3; i < argc; ++i) {
      times[(i - 3) * runs + left] = seconds_of(atoi(argv[i]));
    }
  }
  for (int i = 3; i < argc && me == 0; ++i) {
    printf("k2.%s %.6f\n", argv[i], median(times + (i - 3) * runs, runs));
  }
  check(sterna_stop(), "stop");
  free(times);
  return 0;
}
