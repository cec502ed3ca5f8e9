/* What the test programs share: a check that names the line, and the end that says "No Errors". */
#ifndef STERNA_TESTS_MPI_CHECK_H
#define STERNA_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int error_count;
static int world_rank, world_size;

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      if (++error_count <= 20) {                                                       \
        fprintf(stderr, "%s:%d: rank %d: wrong: %s\n", __FILE__, __LINE__, world_rank, \
                #condition);                                                           \
      }                                                                                \
    }                                                                                  \
  } while (0)
/* The call fails with this class. */
#define FAILS(class_wanted, call)                                                            \
  do {                                                                                       \
    int class_found = -1;                                                                    \
    MPI_Error_class((call), &class_found);                                                   \
    if (class_found != (class_wanted)) {                                                     \
      fprintf(stderr, "%s:%d: rank %d: %s gave class %d, not " #class_wanted "\n", __FILE__, \
              __LINE__, world_rank, #call, class_found);                                     \
      ++error_count;                                                                         \
    }                                                                                        \
  } while (0)

__attribute__((unused)) static void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

static int end(void) {
  int total = 0;
  MPI_Allreduce(&error_count, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) {
    printf(total == 0 ? "No Errors\n" : "%d Errors\n", total);
  }
  MPI_Finalize();
  return total == 0 ? 0 : 1;
}

#endif
