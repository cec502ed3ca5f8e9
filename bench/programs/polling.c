/* What it costs a program that computes on all processors that messages may come (paper 004, 3.3:
 * a processor of its own for polling costs that processor): prints "open MICROSECONDS", a computation
 * while each rank has a large receive open, and "plain", the same without; medians.
 *
 * usage: polling BATCHES MICROSECONDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { kBytes = 1 << 20 };

int main(int argc, char** argv) {
  int rank = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int batches = argc == 3 ? atoi(argv[1]) : 0;
  if (batches < 1) {
    fprintf(stderr, "usage: polling BATCHES MICROSECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const long turns = (long)(atof(argv[2]) * calibrate_work());
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  char* incoming = malloc(kBytes);
  char* outgoing = calloc(kBytes, 1);
  double* times[2] = {malloc(sizeof(double) * batches), malloc(sizeof(double) * batches)};
  if (incoming == NULL || outgoing == NULL || times[1] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int batch = 0; batch < batches; ++batch) {
    for (int is_open = 0; is_open < 2; ++is_open) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Barrier(MPI_COMM_WORLD);
      if (is_open) MPI_Irecv(incoming, kBytes, MPI_CHAR, left, 1, MPI_COMM_WORLD, &request);
      const double begin = MPI_Wtime();
      work(turns);
      times[is_open][batch] = (MPI_Wtime() - begin) * 1e6;
      if (is_open) MPI_Send(outgoing, kBytes, MPI_CHAR, right, 1, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) {
    printf("plain %.3f\nopen %.3f\n", median(times[0], batches), median(times[1], batches));
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
