/* Uses what two libraries of the standard ABI must agree on: constants, handles, the layout of
 * MPI_Status, callbacks; rank 0 says which library it runs on. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int errors;

static void expect(int is_true, const char* what) {
  if (!is_true) {
    fprintf(stderr, "not so: %s\n", what);
    ++errors;
  }
}

static void keep_larger(void* from, void* into, int* count, MPI_Datatype* type) {
  int i;
  expect(*type == MPI_INT, "the operation gets the handle of its type");
  for (i = 0; i < *count; ++i) {
    if (((int*)from)[i] > ((int*)into)[i]) {
      ((int*)into)[i] = ((int*)from)[i];
    }
  }
}

static void check_messages(int rank, int size) {
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int out[3] = {rank, 2 * rank, 3 * rank}, in[3] = {-1, -1, -1}, count = 0;
  double big[5000], got[5000];
  int i;
  MPI_Status status, statuses[2];
  MPI_Request requests[2];
  MPI_Sendrecv(out, 3, MPI_INT, next, 7, in, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
               MPI_COMM_WORLD, &status);
  expect(status.MPI_SOURCE == previous && status.MPI_TAG == 7, "source and tag of a status");
  MPI_Get_count(&status, MPI_INT, &count);
  expect(count == 3 && in[2] == 3 * previous, "a small message");
  for (i = 0; i < 5000; ++i) {
    big[i] = rank + i;
  }
  MPI_Irecv(got, 5000, MPI_DOUBLE, previous, 8, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(big, 5000, MPI_DOUBLE, next, 8, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  MPI_Get_count(&statuses[0], MPI_DOUBLE, &count);
  expect(count == 5000 && got[4999] == previous + 4999, "a large message");
  expect(requests[0] == MPI_REQUEST_NULL, "a request that has ended is null");
  MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  expect(status.MPI_SOURCE == MPI_PROC_NULL, "nobody's message");
}

static void check_types_and_groups(int rank, int size) {
  int matrix[6] = {0, 1, 2, 3, 4, 5}, column[3] = {-1, -1, -1}, sum = 0, largest = 0, part_size = 0;
  int value = rank + 1, compared = -1;
  MPI_Datatype stride;
  MPI_Op larger;
  MPI_Comm part, copy;
  MPI_Type_vector(3, 1, 2, MPI_INT, &stride);
  MPI_Type_commit(&stride);
  MPI_Sendrecv(matrix, 1, stride, rank, 1, column, 3, MPI_INT, rank, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  expect(column[0] == 0 && column[1] == 2 && column[2] == 4, "a column of a matrix");
  MPI_Type_free(&stride);
  expect(stride == MPI_DATATYPE_NULL, "a freed type is null");
  MPI_Op_create(keep_larger, 1, &larger);
  MPI_Allreduce(&value, &largest, 1, MPI_INT, larger, MPI_COMM_WORLD);
  expect(largest == size, "an operation of the program");
  MPI_Op_free(&larger);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &part);
  expect(value == size * (size + 1) / 2, "a sum in place");
  expect((part == MPI_COMM_NULL) == (rank % 2 != 0), "a split leaves out who has no colour");
  if (part != MPI_COMM_NULL) {
    MPI_Comm_size(part, &part_size);
    expect(part_size == (size + 1) / 2, "a split by colour");
    MPI_Comm_free(&part);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_compare(copy, MPI_COMM_WORLD, &compared);
  expect(compared == MPI_CONGRUENT, "a duplicate is congruent");
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Send(&sum, 1, MPI_INT, size, 0, copy), &sum);
  expect(sum == MPI_ERR_RANK, "the class of an error");
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  int rank, size, total = 0, length = 0;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_messages(rank, size);
  check_types_and_groups(rank, size);
  MPI_Reduce(&errors, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, " ")] = '\0';
  if (rank == 0 && total == 0) {
    printf("%d ranks of %s: no errors\n", size, version);
  }
  MPI_Finalize();
  return errors != 0;
}
