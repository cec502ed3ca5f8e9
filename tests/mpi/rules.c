/* What the standard says of rare cases, each of which has been wrong once. */
#include "check.h"

static int keys[3];
static int deleted;

static int count_deletion(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static int delete_neighbours(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)keyval, (void)value, (void)extra;
  MPI_Comm_delete_attr(comm, keys[0]);
  MPI_Comm_delete_attr(comm, keys[2]);
  return MPI_SUCCESS;
}

static int deletes_itself(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)extra;
  if (*(int*)value != 0) {
    *(int*)value = 0;
    MPI_Comm_delete_attr(comm, keyval);
  }
  return MPI_SUCCESS;
}

/* A function that is called for a value deletes the values beside it, or the value itself. */
static void delete_within_deletion(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, i == 1 ? delete_neighbours : count_deletion,
                           &keys[i], NULL);
    MPI_Comm_set_attr(comm, keys[i], &keys[i]);
  }
  MPI_Comm_delete_attr(comm, keys[1]);
  CHECK(deleted == 2);
  int flag = 1;
  void* found = NULL;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_get_attr(comm, keys[i], &found, &flag);
    CHECK(!flag);
    MPI_Comm_free_keyval(&keys[i]);
  }
  int key = MPI_KEYVAL_INVALID, first = 1, second = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes_itself, &key, NULL);
  MPI_Comm_set_attr(comm, key, &first);
  MPI_Comm_set_attr(comm, key, &second);
  MPI_Comm_get_attr(comm, key, &found, &flag);
  CHECK(flag && found == &second);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&comm);
}

/* A key that has been freed: its values stay, and are read and deleted by its number. */
static void use_freed_keys(void) {
  MPI_Comm comm, copy;
  int key = MPI_KEYVAL_INVALID, flag = 0, value = 5;
  void* found = NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, count_deletion, &key, NULL);
  MPI_Comm_set_attr(comm, key, &value);
  const int number = key;
  MPI_Comm_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_get_attr(copy, number, &found, &flag);
  CHECK(flag && found == &value);
  deleted = 0;
  CHECK(MPI_Comm_delete_attr(comm, number) == MPI_SUCCESS && deleted == 1);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(copy, number, &value));
  MPI_Comm_free(&copy);
  CHECK(deleted == 2);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(comm, number, &found, &flag)); /* Its last use is over. */
  MPI_Comm_free(&comm);
}

/* Types of Fortran's kinds are predefined, so predefined operations take them. */
static void reduce_kinds(void) {
  MPI_Datatype real, integer, complex;
  double in = 1.5, sum = 0;
  long product = 3, factor = world_rank == 0 ? 7 : 1;
  double pair[2] = {1, 2}, pairs[2] = {0, 0};
  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
  MPI_Type_create_f90_integer(18, &integer);
  MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &complex);
  MPI_Allreduce(&in, &sum, 1, real, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == 1.5 * world_size);
  MPI_Allreduce(&factor, &product, 1, integer, MPI_PROD, MPI_COMM_WORLD);
  CHECK(product == 7);
  MPI_Allreduce(pair, pairs, 1, complex, MPI_SUM, MPI_COMM_WORLD);
  CHECK(pairs[0] == world_size && pairs[1] == 2 * world_size);
}

/* A flush that does not block ends when what is in the buffer has left, not before, and needs no
 * more. */
static void flush_beside(void) {
  enum { kBytes = 100000 };
  static char buffer[kBytes + MPI_BSEND_OVERHEAD], message[kBytes], received[kBytes];
  MPI_Request request, nothing;
  MPI_Comm comm;
  int flag = 1;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Buffer_iflush(&nothing); /* No buffer. */
  MPI_Wait(&nothing, MPI_STATUS_IGNORE);
  MPI_Buffer_attach(buffer, sizeof buffer);
  memset(message, 3, kBytes);
  CHECK(MPI_Bsend(message, kBytes, MPI_CHAR, 0, 1, comm) == MPI_SUCCESS);
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(message, kBytes, MPI_CHAR, 0, 2, comm));
  MPI_Buffer_iflush(&request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Recv(received, kBytes, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
  MPI_Request both[2] = {request, MPI_REQUEST_NULL};
  int which = -1;
  MPI_Waitany(2, both, &which, MPI_STATUS_IGNORE);
  CHECK(which == 0 && both[0] == MPI_REQUEST_NULL && received[kBytes - 1] == 3);
  CHECK(MPI_Bsend(message, kBytes, MPI_CHAR, 0, 1, comm) == MPI_SUCCESS);
  MPI_Buffer_iflush(&request);
  MPI_Recv(received, kBytes, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
  void* detached = NULL;
  int bytes = 0;
  MPI_Buffer_detach(&detached, &bytes);
  CHECK(detached == buffer && bytes == (int)sizeof buffer);
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* The buffer is gone, and empty. */
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Comm_free(&comm);
}

/* Classes and codes that come and go: numbers are used again, and what is left stays right. */
static void add_and_remove_errors(void) {
  enum { kRounds = 2000 };
  int kept = 0, class_of_it = 0, error_class = 0, code = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Add_error_class(&kept);
  MPI_Add_error_string(kept, "kept");
  int largest = kept;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Add_error_class(&error_class);
    for (int k = 0; k < 5; ++k) {
      MPI_Add_error_code(error_class, &code);
      largest = code > largest ? code : largest;
      MPI_Add_error_string(code, "code");
      if (k == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        FAILS(MPI_ERR_OTHER, MPI_Remove_error_class(error_class));
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
      }
      MPI_Remove_error_string(code);
      MPI_Remove_error_code(code);
    }
    MPI_Remove_error_class(error_class);
  }
  CHECK(largest <= kept + 2);
  MPI_Error_class(kept, &class_of_it);
  MPI_Error_string(kept, text, &length);
  CHECK(class_of_it == kept && strcmp(text, "kept") == 0);
  MPI_Remove_error_string(kept);
  MPI_Remove_error_class(kept);
}

static void choose_grids(void) {
  const struct {
    int count, sizes[3];
  } grids[] = {
      {5040, {21, 16, 15}}, {7488, {26, 18, 16}}, {34425, {51, 27, 25}},        {12, {3, 2, 2}},
      {7, {7, 1, 1}},       {1, {1, 1, 1}},       {1 << 30, {1024, 1024, 1024}}};
  for (unsigned i = 0; i < sizeof grids / sizeof *grids; ++i) {
    int sizes[3] = {0, 0, 0};
    MPI_Dims_create(grids[i].count, 3, sizes);
    CHECK(memcmp(sizes, grids[i].sizes, sizeof sizes) == 0);
  }
  int many[31] = {0};
  MPI_Dims_create(735134400, 31, many); /* With the most divisors: found without trying all. */
  CHECK(many[0] == 17 && many[30] == 1);
}

/* The communicator that messages named last is not MPI_COMM_WORLD when all ends. */
static void name_self_last(void) {
  int out = 1, in = 0;
  MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  CHECK(in == 1);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  delete_within_deletion();
  use_freed_keys();
  reduce_kinds();
  flush_beside();
  add_and_remove_errors();
  choose_grids();
  name_self_last();
  return end();
}
