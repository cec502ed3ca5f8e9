/* Nobody leaves a balance point before all have called it, however ranks move between two: every
 * call is counted in a file. The load shifts from step to step.
 *
 * usage: cluster_points STEPS FILE [NODES]: with NODES each rank also moves itself, anywhere.
 * Prints "No Errors".
 */
#include <fcntl.h>
#include <sterna/balance.h>
#include <sterna/migrate.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../mpi/check.h"

static void count(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  CHECK(file >= 0 && write(file, "x", 1) == 1);
  close(file);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int steps = atoi(argv[1]);
  const unsigned nodes = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
  unsigned random = (unsigned)world_rank * 7919u + 1;
  volatile double sum = 0;
  for (int step = 1; step <= steps; ++step) {
    const int is_loaded = (world_rank + step / 2) % world_size < world_size / 3 + 1;
    for (int i = 0; i < (is_loaded ? 5000 : 100); ++i) {
      sum += i;
    }
    count(argv[2]);
    CHECK(sterna_balance_point() == STERNA_SUCCESS);
    struct stat status;
    CHECK(stat(argv[2], &status) == 0 && status.st_size >= (long)step * world_size);
    if (nodes != 0) {
      random = random * 1664525u + 1013904223u;
      sterna_migrate_to((random >> 16) % nodes);
    }
  }
  return end();
}
