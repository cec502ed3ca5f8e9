/* Irregular datatypes: prints "WHAT.KIND.BYTES US" for blocks of so many bytes (of doubles) at
 * irregular places, 1000 of them: WHAT is pack, unpack, way (to and fro, one way) or make (a type is
 * made, committed and freed); KIND is alike (blocks of one length, MPI_Type_create_indexed_block),
 * unlike (lengths around it, MPI_Type_indexed) or rows (three blocks of a vector at each place).
 * Medians of many short batches.
 *
 * usage: datatypes BATCHES BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

#define BLOCKS 1000
#define TURNS 10

static const char* const kKinds[] = {"alike", "unlike", "rows"};
static int lengths[BLOCKS], places[BLOCKS];
static MPI_Datatype type, row;
static char *memory, *stream;
static int rank, kind, length, bytes;

/* The same numbers for all implementations. */
static int draw(int values) {
  static unsigned state = 1;
  state = state * 1103515245u + 12345u;
  return (int)((state >> 16) % (unsigned)values);
}

static void make(void) {
  if (kind == 1) {
    MPI_Type_indexed(BLOCKS, lengths, places, MPI_DOUBLE, &type);
  } else if (kind == 0) {
    MPI_Type_create_indexed_block(BLOCKS, length, places, MPI_DOUBLE, &type);
  } else {
    MPI_Type_create_indexed_block(BLOCKS, 1, places, row, &type);
  }
  MPI_Type_commit(&type);
}

static void make_and_free(void) {
  MPI_Type_free(&type);
  make();
}

static void by_pack(void) {
  int position = 0;
  MPI_Pack(memory, 1, type, stream, bytes, &position, MPI_COMM_WORLD);
}

static void by_unpack(void) {
  int position = 0;
  MPI_Unpack(stream, bytes, &position, memory, 1, type, MPI_COMM_WORLD);
}

static void by_way(void) {
  if (rank == 0) MPI_Send(memory, 1, type, 1, 0, MPI_COMM_WORLD);
  MPI_Recv(memory, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(memory, 1, type, 0, 0, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*pass)(void);
  int ways;
} kWhats[] = {{"pack", by_pack, 1}, {"unpack", by_unpack, 1}, {"way", by_way, 2},
              {"make", make_and_free, 1}};

static void measure(int what, double* times, int batches) {
  for (int batch = -1; batch < batches; ++batch) { /* The first one warms up. */
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < TURNS; ++i) kWhats[what].pass();
    const double us = (MPI_Wtime() - begin) * 1e6;
    if (batch >= 0) times[batch] = us / TURNS / kWhats[what].ways;
  }
  if (rank == 0) {
    printf("%s.%s.%d %.4f\n", kWhats[what].name, kKinds[kind], length * 8, median(times, batches));
  }
}

int main(int argc, char** argv) {
  const int batches = init_for_batches(&argc, &argv, "datatypes");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* times = take_memory(sizeof(double) * (size_t)batches);
  for (int i = 2; i < argc; ++i) {
    length = atoi(argv[i]) / 8;
    MPI_Type_vector(3, length, length + 2, MPI_DOUBLE, &row);
    /* In doubles, or as many rows. */
    for (kind = 0; kind < 3; ++kind) {
      int at = 0;
      for (int block = 0; block < BLOCKS; ++block) {
        lengths[block] = kind == 1 ? 1 + draw(2 * length - 1) : length;
        at += draw(4) + (kind != 2);
        places[block] = at;
        at += kind == 2 ? 1 : lengths[block];
      }
      make();
      MPI_Aint lower = 0, extent = 0;
      MPI_Type_get_true_extent(type, &lower, &extent);
      MPI_Type_size(type, &bytes);
      memory = take_memory((size_t)(lower + extent));
      stream = take_memory((size_t)bytes);
      for (int what = 0; what < 4; ++what) measure(what, times, batches);
      free(stream);
      free(memory);
      MPI_Type_free(&type);
    }
    MPI_Type_free(&row);
  }
  fflush(stdout);
  free(times);
  MPI_Finalize();
  return 0;
}
