/* Every rank counts with the others for some time; a rank that ran twice, or from an old copy,
 * would count wrong. Arguments: milliseconds, or the path of a file that ends it, what goes wrong
 * (then there are 200 rounds at least; nothing, segv, abort, overflow, exit, mpi_abort), in which rank. Prints "rank R counted right"
 * once a rank. */
#include <signal.h>
#include <unistd.h>

#include "../mpi/check.h"

static volatile int sink;

static int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  sink = frame[0];
  return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

static void go_wrong(const char* how) {
  if (strcmp(how, "segv") == 0) {
    *(volatile int*)16 = 1;
  } else if (strcmp(how, "abort") == 0) {
    abort();
  } else if (strcmp(how, "overflow") == 0) {
    sink = overflow(0);
  } else if (strcmp(how, "exit") == 0) {
    exit(3);
  } else if (strcmp(how, "mpi_abort") == 0) {
    MPI_Abort(MPI_COMM_WORLD, 42);
  } else if (strcmp(how, "file") == 0) {
    FILE* file = fopen("/etc/hostname", "r");
    if (file == NULL) {
      exit(4);
    }
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const double seconds = (argc > 1 ? atoi(argv[1]) : 100) / 1000.0;
  const char* file = argc > 1 && argv[1][0] == '/' ? argv[1] : NULL;
  const char* how = argc > 2 ? argv[2] : "nothing";
  const int who = argc > 3 ? atoi(argv[3]) : 0;
  const double start = MPI_Wtime();
  long rounds = 0;
  int more = 1, is_wrong = 0;
  while (more) {
    long mine = rounds * world_size + world_rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == rounds * world_size * world_size + (long)world_size * (world_size - 1) / 2);
    ++rounds;
    if (rounds == 20 && world_rank == who && !is_wrong) {
      is_wrong = 1;
      go_wrong(how);
    }
    /* What is to go wrong goes wrong, and who asks for it has many rounds, however slow the machine is. */
    more = file != NULL ? access(file, F_OK) != 0
                        : MPI_Wtime() - start < seconds || (argc > 2 && rounds < 200);
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    usleep(200);
  }
  if (error_count == 0) {
    printf("rank %d counted right\n", world_rank);
  }
  return end();
}
