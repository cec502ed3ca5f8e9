/* A process that dies while the others meet it. The launcher ends the job, since a rank has failed;
 * who has the time to see the end of its call says if that was none of an error. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank = 0, size = 0, error_class = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 20; ++round) { /* The last may already be without the dead. */
    double mine = rank, sum = 0;
    const int error = MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (error == MPI_SUCCESS && sum != size * (size - 1) / 2.0) {
      fprintf(stderr, "not true: the sum is %g\n", sum);
    }
  }
  if (rank == 1) raise(SIGKILL);
  for (int round = 0; round < size; ++round) { /* Who comes again is not another one. */
    MPI_Error_class(MPI_Barrier(MPI_COMM_WORLD), &error_class);
    if (error_class != MPI_ERR_PROC_ABORTED) {
      fprintf(stderr, "not true: a barrier with a dead process ended with %d\n", error_class);
    }
  }
  for (;;) pause(); /* Until the launcher ends us: who returned now could seem the one that failed. */
}
