/* The middle rank posts receives; it and those after it, one or more a worker of the last node,
 * compute without a call of MPI until rank 0 says, by a folder, that its large sends are through:
 * somebody else must take what comes. Who computes takes a worker from all others, so nobody is
 * still needed when that begins: no barrier, whose last messages a rank without a worker would owe.
 * Arguments: the folder; "all": all ranks compute, until somebody else makes the folder. Prints "No
 * Errors". */
#include <sys/stat.h>
#include <unistd.h>

#include "../mpi/check.h"

enum { kCount = 1 << 20, kMessages = 3, kGo = 99 };

static void compute_until(const char* folder) {
  volatile double sum = 0;
  do {
    for (int i = 0; i < 100000; ++i) {
      sum += i;
    }
  } while (access(folder, F_OK) != 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 2) {
    MPI_Barrier(MPI_COMM_WORLD);
    compute_until(argv[1]);
    return end();
  }
  int* numbers = calloc(kCount * kMessages, sizeof *numbers);
  MPI_Request requests[kMessages];
  const int receiver = world_size / 2;
  if (world_rank == receiver) {
    for (int i = 0; i < kMessages; ++i) {
      MPI_Irecv(numbers + i * kCount, kCount, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int rank = receiver + 1; rank < world_size; ++rank) {
      MPI_Send(NULL, 0, MPI_INT, rank, kGo, MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_INT, 0, kGo, MPI_COMM_WORLD);
  } else if (world_rank == 0 || world_rank > receiver) {
    MPI_Recv(NULL, 0, MPI_INT, receiver, kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (world_rank == 0) {
    for (int i = 0; i < kMessages; ++i) {
      for (int j = 0; j < kCount; ++j) {
        numbers[j] = i + j;
      }
      MPI_Ssend(numbers, kCount, MPI_INT, receiver, i, MPI_COMM_WORLD);
    }
    CHECK(mkdir(argv[1], 0700) == 0);
  } else if (world_rank >= receiver) {
    compute_until(argv[1]);
  }
  if (world_rank == receiver) {
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMessages; ++i) {
      for (int j = 0; j < kCount; ++j) {
        CHECK(numbers[i * kCount + j] == i + j);
      }
    }
  }
  free(numbers);
  return end();
}
