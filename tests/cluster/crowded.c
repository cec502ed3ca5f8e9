/* Ranks that wait for one another without a call of MPI, more of them than workers. Argument:
 *   spin   ranks play in turn: each computes until the one before it has counted on in a file that
 *          all map, and nobody calls. Every rank needs a worker, now and then, of those who compute.
 *   owe    the first rank computes until all others have been through barriers of their own.
 *   pipe   each rank but the last reads a byte from a pipe that the next one writes into.
 * Prints "No Errors". */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../mpi/check.h"

enum { kRounds = 10 };

/* A word that all ranks see, whatever they call. */
static volatile int* shared_word(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0 && ftruncate(file, 4096) == 0);
  volatile int* word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(word != MAP_FAILED);
  close(file);
  return word;
}

static void spin(volatile int* word) {
  for (int round = 0; round < kRounds; ++round) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round * world_size + world_rank) {
    }
    __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
  }
  /* All have played when the last one ends. */
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < kRounds * world_size) {
  }
}

static void owe(volatile int* word) {
  MPI_Comm others;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0, world_rank, &others);
  if (world_rank == 0) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != world_size - 1) {
    }
  } else {
    for (int round = 0; round < kRounds; ++round) {
      MPI_Barrier(others);
    }
    __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
  }
  MPI_Comm_free(&others);
}

static void use_pipes(const char* directory) {
  char path[512];
  char byte = 0;
  snprintf(path, sizeof path, "%s/pipe%d", directory, world_rank);
  if (world_rank + 1 < world_size) {
    const int file = open(path, O_RDONLY); /* Blocks until the writer opens it. */
    CHECK(file >= 0 && read(file, &byte, 1) == 1 && byte == 'x');
    close(file);
  }
  if (world_rank > 0) {
    snprintf(path, sizeof path, "%s/pipe%d", directory, world_rank - 1);
    const int file = open(path, O_WRONLY);
    CHECK(file >= 0 && write(file, "x", 1) == 1);
    close(file);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  char path[512];
  snprintf(path, sizeof path, "%s/word", argv[2]);
  volatile int* word = shared_word(path);
  if (world_rank == 0) {
    for (int rank = 0; rank + 1 < world_size; ++rank) {
      snprintf(path, sizeof path, "%s/pipe%d", argv[2], rank);
      CHECK(mkfifo(path, 0600) == 0);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (argv[1][0] == 's') {
    spin(word);
  } else if (argv[1][0] == 'o') {
    owe(word);
  } else {
    use_pipes(argv[2]);
  }
  munmap((void*)word, 4096);
  return end();
}
