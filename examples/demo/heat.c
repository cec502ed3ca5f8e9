/* Heat conduction in a plate with a hot, strongly nonlinear corner.
 *
 * Explicit five-point conduction on a grid cut in horizontal bands, one a rank. Every cell also
 * radiates: its implicit heat balance t + r t^4 = b is solved by Newton's method to the last bits, and
 * cells that are hotter need more iterations. The hot corner lies in a few bands only, so a static
 * cutting leaves most ranks waiting. The result does not depend on where ranks run.
 *
 * usage: heat CELLS STEPS      a grid of CELLS x CELLS
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int first, rows, columns; /* Rows first .. first + rows - 1 of the plate. */
  double *now, *next;       /* rows + 2 lines: a ghost line on each side. */
} band;

static int rank, size;

static void fail(const char* what) {
  fprintf(stderr, "heat: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static band make_band(int cells) {
  band b;
  b.columns = cells;
  b.first = (int)((long)cells * rank / size);
  b.rows = (int)((long)cells * (rank + 1) / size) - b.first;
  const size_t count = (size_t)(b.rows + 2) * cells;
  b.now = calloc(count, sizeof(double));
  b.next = calloc(count, sizeof(double));
  if (b.now == NULL || b.next == NULL) fail("out of memory");
  for (int i = 0; i < b.rows; ++i) {
    for (int j = 0; j < cells; ++j) {
      const double y = (double)(b.first + i) / cells, x = (double)j / cells;
      b.now[(size_t)(i + 1) * cells + j] = x * x + y * y < 0.09 ? 900.0 + 100.0 * x : 0.0;
    }
  }
  return b;
}

static void exchange_ghosts(band* b) {
  const int up = rank == 0 ? MPI_PROC_NULL : rank - 1;
  const int down = rank == size - 1 ? MPI_PROC_NULL : rank + 1;
  double* now = b->now;
  const size_t n = b->columns;
  MPI_Sendrecv(now + n, b->columns, MPI_DOUBLE, up, 1, now + (b->rows + 1) * n, b->columns,
               MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(now + b->rows * n, b->columns, MPI_DOUBLE, down, 2, now, b->columns, MPI_DOUBLE, up,
               2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Solves t + r t^4 = balance. A cold cell has nothing to radiate. */
static double radiate(double balance) {
  const double r = 1e-9;
  if (balance < 1.0) return balance;
  double t = 1.0;
  for (int i = 0; i < 200; ++i) {
    const double cube = t * t * t;
    const double move = (t + r * cube * t - balance) / (1.0 + 4.0 * r * cube);
    t -= 0.25 * move; /* Damped: robust far from the solution, as stiff sources need. */
    if (fabs(move) < 1e-13 * t) break;
  }
  return t;
}

static void step(band* b) {
  const size_t n = b->columns;
  exchange_ghosts(b);
  for (int i = 1; i <= b->rows; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const double here = b->now[i * n + j];
      const double left = j == 0 ? here : b->now[i * n + j - 1];
      const double right = j == n - 1 ? here : b->now[i * n + j + 1];
      const double above = b->first + i == 1 ? here : b->now[(i - 1) * n + j];
      const double below = b->first + i == b->columns ? here : b->now[(i + 1) * n + j];
      b->next[i * n + j] = radiate(here + 0.2 * (left + right + above + below - 4.0 * here));
    }
  }
  double* swap = b->now;
  b->now = b->next;
  b->next = swap;
}

/* A sum of hashed bits: equal only when every temperature is equal to the last bit. */
static uint64_t fingerprint(const band* b) {
  uint64_t sum = 0;
  for (int i = 1; i <= b->rows; ++i) {
    for (int j = 0; j < b->columns; ++j) {
      uint64_t bits;
      memcpy(&bits, &b->now[(size_t)i * b->columns + j], sizeof bits);
      const uint64_t place = (uint64_t)(b->first + i) * b->columns + j;
      sum += (bits ^ (place * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || atoi(argv[1]) < size || atoi(argv[2]) < 1) {
    fail("usage: heat CELLS STEPS, with at least one row of cells a rank");
  }
  const int steps = atoi(argv[2]);
  band b = make_band(atoi(argv[1]));
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < steps; ++i) step(&b);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  const uint64_t mine = fingerprint(&b);
  uint64_t all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("heat seconds %.4f steps %d result %016llx\n", seconds, steps, (unsigned long long)all);
  }
  free(b.now);
  free(b.next);
  MPI_Finalize();
  return 0;
}
