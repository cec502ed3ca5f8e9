/* Kernel K1 of paper 000 in processes: as a job of Sterna, each process with threads that compute;
 * or as plain processes, made by fork, in which Sterna is not started: the same machine code.
 * Prints "seconds NUMBER", from the last that begins to the last that ends, and "switches NUMBER",
 * of contexts by the kernel, all processes together.
 *
 * usage: k1 job TIMES THREADS        how often, and threads of each process
 *        k1 plain TIMES PROCESSES
 *        k1 against TIMES            one process of a job: in turn in a thread and in a child that
 *                                    was made before Sterna; prints "thread NUMBER", "plain NUMBER"
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static double *a, *b;

static void make_arrays(void) {
  a = malloc(sizeof(double) * K1_SIDE_A * K1_SIDE_A);
  b = malloc(sizeof(double) * K1_SIDE_B * K1_SIDE_B);
  if (a == NULL || b == NULL) {
    exit(1);
  }
  for (int i = 0; i < K1_SIDE_A * K1_SIDE_A; ++i) {
    a[i] = 1.5;
  }
  for (int i = 0; i < K1_SIDE_B * K1_SIDE_B; ++i) {
    b[i] = 0.5;
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Part `index` of `count`, (BLOCK, BLOCK). */
static void run_part(int count, int index, int times) {
  const int rows = kernel_row_parts(count);
  for (int i = 0; i < times; ++i) {
    k1(a, b, rows, count / rows, index, 1);
  }
}

static double switches_of(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return (double)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* A pipe that all wait at, by the one byte for each. */
static void open_gate(int gate, int count) {
  for (int i = 0; i < count; ++i) {
    if (write(gate, "", 1) != 1) {
      exit(1);
    }
  }
}

static int run_plain(int times, int count) {
  int ready[2], go[2];
  if (pipe(ready) != 0 || pipe(go) != 0) {
    return 1;
  }
  char byte;
  for (int i = 0; i < count; ++i) {
    if (fork() == 0) {
      open_gate(ready[1], 1);
      if (read(go[0], &byte, 1) != 1) {
        _exit(1);
      }
      run_part(count, i, times);
      _exit(0);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (read(ready[0], &byte, 1) != 1) {
      return 1;
    }
  }
  const double begin = now();
  open_gate(go[1], count);
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) {
      return 1;
    }
  }
  printf("seconds %.6f\nswitches %.0f\n", now() - begin, switches_of(RUSAGE_CHILDREN));
  return 0;
}

typedef struct {
  int count, index, times;
} part;

static void part_main(void* argument) {
  const part* const its = argument;
  run_part(its->count, its->index, its->times);
}

static void check(sterna_status status, const char* what) {
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "k1: %s: %s\n", what, sterna_status_text(status));
    exit(1);
  }
}

/* Threads `first` to `first + threads` of `count` in the whole job. */
static void run_threads(int count, int first, int threads, int times) {
  part parts[64];
  sterna_thread* started[64];
  for (int i = 0; i < threads; ++i) {
    parts[i] = (part){count, first + i, times};
    check(sterna_thread_create(NULL, part_main, &parts[i], &started[i]), "a thread");
  }
  for (int i = 0; i < threads; ++i) {
    check(sterna_thread_join(started[i]), "its end");
  }
}

/* A process made before Sterna: answers each byte with how long it took. */
static void serve(int orders, int answers) {
  char byte;
  while (read(orders, &byte, 1) == 1) {
    const double begin = now();
    run_part(1, 0, 1);
    const double seconds = now() - begin;
    if (write(answers, &seconds, sizeof seconds) != sizeof seconds) {
      break;
    }
  }
  _exit(0);
}

static int compare(const void* left, const void* right) {
  const double x = *(const double*)left, y = *(const double*)right;
  return (x > y) - (x < y);
}

/* In turn here and there. Prints the median here by the median ratio, as rows do. */
static void run_against(int times, int orders, int answers) {
  double ratios[1000], plains[1000];
  for (int i = 0; i < times; ++i) {
    double plain = 0;
    if (write(orders, "", 1) != 1 || read(answers, &plain, sizeof plain) != sizeof plain) {
      exit(1);
    }
    const double begin = now();
    run_threads(1, 0, 1, 1);
    ratios[i] = (now() - begin) / plain;
    plains[i] = plain;
  }
  qsort(ratios, (size_t)times, sizeof(double), compare);
  qsort(plains, (size_t)times, sizeof(double), compare);
  printf("thread %.6f\nplain %.6f\n", ratios[times / 2] * plains[times / 2], plains[times / 2]);
}

static void run_job(int times, int threads) {
  const int rank = (int)sterna_rank(), count = (int)sterna_rank_count();
  run_threads(count * threads, rank * threads, threads, 1); /* Warms up. */
  const double switches_before = switches_of(RUSAGE_SELF);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now();
  run_threads(count * threads, rank * threads, threads, times);
  double switches = switches_of(RUSAGE_SELF) - switches_before, all = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = now() - begin;
  MPI_Reduce(&switches, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("seconds %.6f\nswitches %.0f\n", seconds, all);
  }
}

int main(int argc, char** argv) {
  const int times = argc > 2 ? atoi(argv[2]) : 0;
  const int count = argc > 3 ? atoi(argv[3]) : 1;
  if (times < 1 || times > 1000 || count < 1 || count > 64) {
    fprintf(stderr, "usage: k1 job|plain|against TIMES [COUNT]\n");
    return 2;
  }
  make_arrays();
  if (strcmp(argv[1], "plain") == 0) {
    return run_plain(times, count);
  }
  const int is_against = strcmp(argv[1], "against") == 0;
  int orders[2] = {-1, -1}, answers[2] = {-1, -1};
  if (is_against) {
    if (pipe(orders) != 0 || pipe(answers) != 0) {
      return 1;
    }
    if (fork() == 0) {
      close(orders[1]);
      serve(orders[0], answers[1]);
    }
    close(orders[0]);
  }
  MPI_Init(&argc, &argv);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 1;
  check(sterna_start(&options), "the start");
  if (!is_against) {
    run_job(times, count);
  } else if (sterna_rank() == 0) {
    run_against(times, orders[1], answers[0]);
  }
  close(orders[1]);
  check(sterna_stop(), "the stop");
  MPI_Finalize();
  return 0;
}
