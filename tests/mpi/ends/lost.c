/* A process that dies while the others meet it. The launcher ends the job, since a rank has failed;
 * who has the time to see the end of its call says if that was none of an error. With an argument
 * it lets the others go on (--on-loss go_on): each call that needs the dead ends with an error,
 * those between the living do what they did, and all come to their end. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int class_of(int error) {
  int error_class = 0;
  MPI_Error_class(error, &error_class);
  return error_class;
}

static void expect_loss(const char* what, int error) {
  if (class_of(error) != MPI_ERR_PROC_ABORTED) {
    fprintf(stderr, "not true: %s with a dead process ended with %d\n", what, class_of(error));
  }
}

static void expect_success(const char* what, int error) {
  if (error != MPI_SUCCESS) {
    fprintf(stderr, "not true: %s of the living ended with %d\n", what, class_of(error));
  }
}

/* Of those that printed what they are: all but those on the node of rank 1. */
static int is_dead(int rank) {
  int number = 0;
  return MPI_Iprobe(rank, 9, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

/* A communicator of the living works as any other. */
static void meet_the_living(int rank, int size) {
  int living[64], count = 0;
  MPI_Group all, group;
  MPI_Comm comm;
  double mine = rank, sum = 0, expected = 0;
  for (int other = 0; other < size; ++other) {
    if (other == rank || !is_dead(other)) {
      living[count++] = other;
      expected += other;
    }
  }
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, count, living, &group);
  expect_success("a communicator", MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  expect_success("a sum", MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm));
  if (sum != expected) {
    fprintf(stderr, "not true: the living have the sum %g\n", sum);
  }
  expect_success("a barrier", MPI_Barrier(comm));
  MPI_Comm beside = MPI_COMM_NULL; /* Their leader alone talks to the dead one. */
  expect_loss("a meeting of two groups",
              MPI_Intercomm_create(comm, 0, MPI_COMM_WORLD, 1, 4, &beside));
  if (beside != MPI_COMM_NULL) {
    fprintf(stderr, "not true: there is an intercommunicator with the dead\n");
  }
  expect_success("a barrier", MPI_Barrier(comm));
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
}

/* Between those of odd and of even ranks. */
static MPI_Comm meet_in_halves(int rank) {
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 4, &inter);
  MPI_Comm_free(&half);
  return inter;
}

static void expect_no_part(MPI_Comm inter, int rank) {
  MPI_Comm part = MPI_COMM_NULL;
  expect_loss("a split", MPI_Comm_split(inter, 0, rank, &part));
  if (part != MPI_COMM_NULL) {
    fprintf(stderr, "not true: there is a part with the dead\n");
  }
  MPI_Comm_free(&inter);
}

enum { kRows = 50 };
static int grid[kRows][2];

/* Of a column of the grid, whose bytes are unpacked. The request and its memory have served a
 * message that came. */
static MPI_Request receive_column(int rank) {
  int column[kRows];
  MPI_Datatype type;
  MPI_Request send, request;
  MPI_Type_vector(kRows, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < kRows; ++i) {
    column[i] = 1000 + i;
  }
  MPI_Irecv(grid, 1, type, rank, 5, MPI_COMM_WORLD, &request);
  MPI_Isend(column, kRows, MPI_INT, rank, 5, MPI_COMM_WORLD, &send);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < kRows; ++i) {
    if (grid[i][0] != 1000 + i || grid[i][1] != 0) {
      fprintf(stderr, "not true: row %d of what came is %d, %d\n", i, grid[i][0], grid[i][1]);
    }
    grid[i][0] = 0;
  }
  MPI_Irecv(grid, 1, type, 1, 5, MPI_COMM_WORLD, &request);
  MPI_Type_free(&type);
  return request;
}

/* A receive to which nothing came tells of no message. */
static void expect_empty(const char* what, const MPI_Status* status) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  if (status->MPI_SOURCE != MPI_ANY_SOURCE || status->MPI_TAG != MPI_ANY_TAG || count != 0) {
    fprintf(stderr, "not true: %s that failed tells of %d bytes of rank %d with tag %d\n", what,
            count, status->MPI_SOURCE, status->MPI_TAG);
  }
}

static void expect_no_message(MPI_Request column) {
  MPI_Status status = {.MPI_SOURCE = 0};
  int number = -1;
  expect_loss("the receive of a column", MPI_Wait(&column, &status));
  expect_empty("the receive of a column", &status);
  for (int i = 0; i < kRows; ++i) {
    if (grid[i][0] != 0 || grid[i][1] != 0) {
      fprintf(stderr, "not true: nothing came, and row %d is %d, %d\n", i, grid[i][0], grid[i][1]);
    }
  }
  memset(&status, 0, sizeof status);
  expect_loss("a receive", MPI_Recv(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &status));
  expect_empty("a receive", &status);
}

/* What was begun before the death (`early`), and what begins after it, short and long. */
static void go_on(int rank, int size, MPI_Request early, MPI_Request column, MPI_Comm halves) {
  static char large[1 << 20];
  int number = rank, from = -1;
  MPI_Message message;
  expect_no_message(column);
  expect_loss("an early receive", MPI_Wait(&early, MPI_STATUS_IGNORE));
  expect_loss("a receive", MPI_Recv(&from, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  expect_loss("a long send", MPI_Ssend(large, sizeof large, MPI_CHAR, 1, 7, MPI_COMM_WORLD));
  expect_loss("a probe", MPI_Probe(1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (size > 2 && (rank == 0 || rank == 2)) {
    const int other = 2 - rank;
    expect_success("an exchange", MPI_Sendrecv(&number, 1, MPI_INT, other, 8, &from, 1, MPI_INT,
                                               other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (from != other) {
      fprintf(stderr, "not true: %d came from %d\n", from, other);
    }
  }
  expect_loss("a matched probe", MPI_Mprobe(1, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  expect_loss("a look", MPI_Iprobe(1, 7, MPI_COMM_WORLD, &from, MPI_STATUS_IGNORE));
  expect_loss("a broadcast", MPI_Bcast(large, sizeof large, MPI_CHAR, 1, MPI_COMM_WORLD));
  expect_loss("a collection",
              MPI_Alltoall(large, 8, MPI_CHAR, large + 4096, 8, MPI_CHAR, MPI_COMM_WORLD));
  expect_no_part(halves, rank);
  meet_the_living(rank, size);
  printf("rank %d goes on\n", rank);
  MPI_Finalize();
}

int main(int argc, char** argv) {
  int rank = 0, size = 0, never = 0;
  MPI_Request early, column;
  MPI_Comm halves = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (argc > 1) {
    halves = meet_in_halves(rank);
  }
  for (int round = 0; round < 20; ++round) { /* The last may already be without the dead. */
    double mine = rank, sum = 0;
    const int error = MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (error == MPI_SUCCESS && sum != size * (size - 1) / 2.0) {
      fprintf(stderr, "not true: the sum is %g\n", sum);
    }
  }
  MPI_Irecv(&never, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &early);
  column = receive_column(rank);
  if (rank == 1) {
    raise(SIGKILL);
  }
  for (int round = 0; round < size; ++round) { /* Who comes again is not another one. */
    expect_loss("a barrier", MPI_Barrier(MPI_COMM_WORLD));
  }
  if (argc > 1) {
    go_on(rank, size, early, column, halves);
    return 0;
  }
  for (;;) {
    pause(); /* Until the launcher ends us: who returned now could seem the one that failed. */
  }
}
