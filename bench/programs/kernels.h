/* What papers 000 and 002 compute, for rows and for timed programs: kernels K1 and K2 of paper 000,
 * and how their arrays are cut. Arrays lie in one dimension, as their compilers made them. One
 * call is one sweep, so that no compiler changes the order of the sweeps. */
#ifndef STERNA_BENCH_KERNELS_H
#define STERNA_BENCH_KERNELS_H

#define K1_SIDE_A 400
#define K1_SIDE_B 200
#define K1_SWEEPS_A 800
#define K1_SWEEPS_B 2400
#define K2_SIDE 400
#define K2_SWEEPS 800

/* Rows [row, row_end) and columns [column, column_end) of a square array. */
typedef struct {
  int row, row_end, column, column_end;
} kernel_block;

/* Of an array of `side` cut in row_parts times column_parts: that of thread or process `index`. */
static inline kernel_block kernel_cut(int side, int row_parts, int column_parts, int index) {
  const int row = index / column_parts, column = index % column_parts;
  kernel_block block;
  block.row = side * row / row_parts;
  block.row_end = side * (row + 1) / row_parts;
  block.column = side * column / column_parts;
  block.column_end = side * (column + 1) / column_parts;
  return block;
}

/* (BLOCK, BLOCK) for `count`, a power of two: 2 is 2 x 1, 8 is 4 x 2, as in table T5. */
static inline int kernel_row_parts(int count) {
  int rows = 1;
  while (rows * rows < count) {
    rows *= 2;
  }
  return rows;
}

__attribute__((noinline, unused)) static void k1_sweep_a(double* a, kernel_block of, int t) {
  for (int j = of.row; j < of.row_end; ++j) {
    for (int i = of.column; i < of.column_end; ++i) {
      *(a + j * K1_SIDE_A + i) = *(a + j * K1_SIDE_A + i) * (t + 1) - *(a + j * K1_SIDE_A + i) * t;
    }
  }
}

__attribute__((noinline, unused)) static void k1_sweep_b(double* b, const double* a,
                                                         kernel_block of, int t) {
  for (int j = of.row; j < of.row_end; ++j) {
    for (int i = of.column; i < of.column_end; ++i) {
      *(b + j * K1_SIDE_B + i) =
          *(a + j * K1_SIDE_A + i) * t * 3.5 - *(b + j * K1_SIDE_B + i) * 0.9;
    }
  }
}

/* The part of K1 of one thread or process; `scale`: 1 for the whole of its sweeps, 8 for an
 * eighth. */
static inline void k1(double* a, double* b, int row_parts, int column_parts, int index, int scale) {
  const kernel_block of_a = kernel_cut(K1_SIDE_A, row_parts, column_parts, index);
  const kernel_block of_b = kernel_cut(K1_SIDE_B, row_parts, column_parts, index);
  for (int t = 1; t <= K1_SWEEPS_A / scale; ++t) {
    k1_sweep_a(a, of_a, t);
  }
  for (int t = 1; t <= K1_SWEEPS_B / scale; ++t) {
    k1_sweep_b(b, a, of_b, t);
  }
}

/* K2: row j from rows j and j + 1; `below` is the row under the block. The paper does not say what
 * f is: this one costs about 2.3 times an element of K1, as there (99.3 s for 128 million elements
 * against 76.6 s for 224 million), and keeps (0, 1]. */
__attribute__((noinline, unused)) static void k2_sweep(double* a, const double* below,
                                                       kernel_block of) {
  for (int j = of.row; j < of.row_end; ++j) {
    const double* const next = j + 1 < of.row_end ? a + (j + 1) * K2_SIDE : below;
    for (int i = of.column; i < of.column_end; ++i) {
      const double x = 0.5 * (*(a + j * K2_SIDE + i) + *(next + i));
      const double s = x * x;
      *(a + j * K2_SIDE + i) = x * (1.875 - s * (1.25 - 0.375 * s));
    }
  }
}

#endif
