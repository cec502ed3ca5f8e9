/* Two ranks that talk all the time. With "together", for two mobile ranks of one node: those that
 * begin on two workers come to one. */
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { kRounds = 20000, kLook = 500, kTriesMax = 100, kApartWanted = 3 };

/* Another worker, if there is one, takes one of the two meanwhile. */
static void compute(double seconds) {
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < seconds) {
  }
}

/* How many of the first and of the last kLook rounds both ran on one kernel thread, which each tells
 * the other. */
static void talk(int together[2]) {
  together[0] = together[1] = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int has_look = round < kLook || round >= kRounds - kLook;
    long said[2] = {round, has_look ? syscall(SYS_gettid) : 0}, heard[2] = {-1, -1};
    if (world_rank == 0) {
      MPI_Send(said, 2, MPI_LONG, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(heard, 2, MPI_LONG, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(heard, 2, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      said[1] = has_look ? syscall(SYS_gettid) : 0;
      MPI_Send(said, 2, MPI_LONG, 0, 1, MPI_COMM_WORLD);
    }
    CHECK(heard[0] == round);
    together[round >= kLook] += has_look && heard[1] == said[1];
  }
}

/* The other worker may take one of them back at any time, so one of several tries is enough. */
static void test_together(void) {
  int apart = 0, gathered = 0;
  for (int i = 0; i < kTriesMax && apart < kApartWanted; ++i) {
    int together[2];
    compute(0.02);
    talk(together);
    MPI_Bcast(together, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (together[0] < kLook / 5) {
      ++apart;
      gathered += together[1] > kLook / 2;
    }
  }
  if (world_rank == 0) {
    printf("%d times apart, %d times together afterwards\n", apart, gathered);
  }
  CHECK(gathered > 0 || apart == 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "together") == 0) {
    CHECK(world_size == 2);
    test_together();
  } else if (world_size == 2) {
    int together[2];
    talk(together);
  }
  return end();
}
