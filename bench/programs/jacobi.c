/* Jacobi on a square, rows in blocks, as the program of paper 002 fig. 7. With JACOBI_THREAD=1 all
 * of a process's work, its messages too, is done by a thread of Sterna; else by the program itself.
 * Prints "jacobi.SIDE SECONDS" of each square. The number of sweeps is such that each has about as
 * many updates: the paper does not give it.
 *
 * usage: jacobi MEGA_UPDATES SIDE...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "sterna/sterna.h"
#include "sterna/thread.h"

static int rank, size, squares;
static double updates;
static char** sides;

static double* new_rows(int rows, int side) {
  double* memory = malloc(sizeof(double) * (size_t)(rows + 2) * (size_t)side);
  if (memory == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < (rows + 2) * side; ++i) {
    memory[i] = i % side == 0 ? 1 : 0;
  }
  return memory;
}

/* The rows next to ours: rows 0 and rows + 1. */
static void exchange(double* a, int rows, int side) {
  const int above = rank == 0 ? MPI_PROC_NULL : rank - 1;
  const int below = rank == size - 1 ? MPI_PROC_NULL : rank + 1;
  MPI_Sendrecv(a + side, side, MPI_DOUBLE, above, 0, a + (rows + 1) * side, side, MPI_DOUBLE, below,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(a + rows * side, side, MPI_DOUBLE, below, 1, a, side, MPI_DOUBLE, above, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double seconds_of(int side) {
  const int rows = side * (rank + 1) / size - side * rank / size;
  int sweeps = (int)(updates / side / side);
  if (sweeps < 2) {
    sweeps = 2;
  }
  double *from = new_rows(rows, side), *to = new_rows(rows, side);
  double begin = 0;
  for (int sweep = 0; sweep <= sweeps; ++sweep) {
    if (sweep == 1) { /* The first warms up. */
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
    }
    exchange(from, rows, side);
    for (int j = 1; j <= rows; ++j) {
      for (int i = 1; i < side - 1; ++i) {
        const double* const at = from + j * side + i;
        to[j * side + i] = 0.25 * (at[-1] + at[1] + at[-side] + at[side]);
      }
    }
    double* const other = from;
    from = to;
    to = other;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begin;
  free(from);
  free(to);
  return seconds;
}

static void run(void* argument) {
  (void)argument;
  /* Once for nothing: until kernel threads that were just made have found their processors, and
   * what a sleep costs is known, a figure of some milliseconds would show that. */
  (void)seconds_of(atoi(sides[0]));
  for (int i = 0; i < squares; ++i) {
    const double seconds = seconds_of(atoi(sides[i]));
    if (rank == 0) {
      printf("jacobi.%s %.6f\n", sides[i], seconds);
    }
  }
}

int main(int argc, char** argv) {
  const char* const variable = getenv("JACOBI_THREAD");
  const int in_thread = variable != NULL && variable[0] == '1';
  int provided = 0, failed = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  updates = 1e6 * atof(argv[1]);
  squares = argc - 2;
  sides = argv + 2;
  if (in_thread) {
    sterna_options options = STERNA_OPTIONS_DEFAULT;
    options.workers = 1;
    sterna_thread* thread = NULL;
    failed = sterna_start(&options) != STERNA_SUCCESS ||
             sterna_thread_create(NULL, run, NULL, &thread) != STERNA_SUCCESS ||
             sterna_thread_join(thread) != STERNA_SUCCESS || sterna_stop() != STERNA_SUCCESS;
  } else {
    run(NULL);
  }
  MPI_Finalize();
  return failed;
}
