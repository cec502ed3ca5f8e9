/* Threads of two processes, each with a partner of its own: messages of MPI that wait beside one
 * another, of which some are too long for their receive. */
#include <mpi.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { THREADS = 5, ROUNDS = 3000, TOO_LONG = 40 };

static int rank;

/* What comes in this round is longer than the receive. */
static int is_too_long(int round) { return round % TOO_LONG == TOO_LONG - 1; }

static void send(int tag, int round) {
  const int words[2] = {round, tag};
  const int count = is_too_long(round) ? 2 : 1;
  EXPECT(MPI_Send(words, count, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD) == MPI_SUCCESS);
}

static void receive(int tag, int round) {
  int words[2] = {-1, -1}, class = MPI_SUCCESS, count = -1;
  MPI_Status status;
  const int source = round % 3 == 0 ? MPI_ANY_SOURCE : 1 - rank;
  const int error = MPI_Recv(words, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &status);
  EXPECT(MPI_Error_class(error, &class) == MPI_SUCCESS);
  EXPECT(class == (is_too_long(round) ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  EXPECT(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 1);
  EXPECT(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == tag);
  EXPECT(words[0] == round && words[1] == -1);
}

static void play(void* argument) {
  const int tag = *(const int*)argument;
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 0) send(tag, round);
    receive(tag, round);
    if (rank == 1) send(tag, round);
  }
}

int main(void) {
  int level = 0, size = 0, tags[THREADS];
  sterna_thread* threads[THREADS];
  EXPECT(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
  EXPECT(level == MPI_THREAD_MULTIPLE);
  EXPECT(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
  EXPECT(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size == 2);
  EXPECT(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  for (int i = 0; i < THREADS; ++i) {
    tags[i] = i;
    EXPECT(sterna_thread_create(NULL, play, &tags[i], &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < THREADS; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(MPI_Finalize() == MPI_SUCCESS);
  puts("No Errors");
  return 0;
}
