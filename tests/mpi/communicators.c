/* Groups, communicators, attributes, info, Cartesian topologies. */
#include <limits.h>

#include "check.h"

static int copies, deletions;
static int copy(MPI_Comm c, int k, void* e, void* in, void* out, int* flag) {
  (void)c, (void)k, (void)e;
  *(void**)out = (char*)in + 1;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}
static int drop(MPI_Comm c, int k, void* v, void* e) {
  (void)c, (void)k, (void)v, (void)e;
  ++deletions;
  return MPI_SUCCESS;
}

static int total(MPI_Comm c) {
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, c);
  return all;
}

static void test_attributes(void) {
  int key, flag;
  char* value;
  int* tag_max;
  MPI_Comm d;
  MPI_Comm_create_keyval(copy, drop, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void*)40);
  MPI_Comm_dup(MPI_COMM_WORLD, &d);
  MPI_Comm_get_attr(d, key, &value, &flag);
  CHECK(flag && value == (char*)41 && copies == 1);
  MPI_Comm_free(&d);
  CHECK(deletions == 1 && d == MPI_COMM_NULL);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  CHECK(deletions == 2);
  MPI_Comm_free_keyval(&key);
  CHECK(key == MPI_KEYVAL_INVALID);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &flag);
  CHECK(flag && *tag_max >= 32767);
}

static void test_groups(void) {
  MPI_Group world, even, odd, both;
  int result, n = 0, size, rank, ranks[64];
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int r = 0; r < world_size; r += 2) {
    ranks[n++] = r;
  }
  MPI_Group_incl(world, n, ranks, &even);
  MPI_Group_excl(world, n, ranks, &odd);
  MPI_Group_union(even, odd, &both);
  MPI_Group_compare(world, both, &result);
  CHECK(result == (world_size < 3 ? MPI_IDENT : MPI_SIMILAR));
  MPI_Group_size(odd, &size);
  CHECK(size == world_size / 2);
  MPI_Group_rank(even, &rank);
  CHECK(rank == (world_rank % 2 ? MPI_UNDEFINED : world_rank / 2));
  MPI_Comm c;
  MPI_Comm_create(MPI_COMM_WORLD, even, &c);
  CHECK((c == MPI_COMM_NULL) == (world_rank % 2 == 1));
  if (c != MPI_COMM_NULL) {
    CHECK(total(c) == n);
    MPI_Comm_free(&c);
  }
  if (world_rank % 2 == 0) {
    MPI_Comm_create_group(MPI_COMM_WORLD, even, 3, &c);
    CHECK(total(c) == n);
    MPI_Comm_free(&c);
  }
  MPI_Group_free(&world);
  MPI_Group_free(&even);
  if (odd != MPI_GROUP_EMPTY) {
    MPI_Group_free(&odd);
  }
  MPI_Group_free(&both);
}

/* Ranges whose next rank would be more than an int. */
static void test_long_strides(void) {
  MPI_Group world, part;
  int ranges[2][3] = {{world_size - 1, world_size - 1, INT_MAX}, {0, 0, INT_MIN}};
  const int count = world_size > 1 ? 2 : 1;
  int size = -1, result = -1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, count, ranges, &part);
  MPI_Group_size(part, &size);
  CHECK(size == count);
  MPI_Group_free(&part);
  MPI_Group_range_excl(world, count, ranges, &part);
  MPI_Group_size(part, &size);
  CHECK(size == world_size - count);
  MPI_Group_compare(part, MPI_GROUP_EMPTY, &result);
  CHECK((result == MPI_IDENT) == (world_size <= 2));
  if (part != MPI_GROUP_EMPTY) {
    MPI_Group_free(&part);
  }
  MPI_Group_free(&world);
}

static void test_communicators(void) {
  MPI_Comm c, d, host;
  MPI_Request q;
  int result, size, rank;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &c);
  MPI_Comm_size(c, &size);
  MPI_Comm_rank(c, &rank);
  CHECK(size == (world_size + 1 - world_rank % 2) / 2);
  CHECK(rank == size - 1 - world_rank / 2);
  CHECK(total(c) == size);
  MPI_Comm_idup(c, &d, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Comm_compare(c, d, &result);
  CHECK(result == MPI_CONGRUENT && total(d) == size);
  MPI_Comm_free(&d);
  MPI_Comm_free(&c);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 1, 0, &c);
  CHECK((c == MPI_COMM_NULL) == (world_rank == 0));
  if (c != MPI_COMM_NULL) {
    MPI_Comm_disconnect(&c);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  CHECK(total(host) == world_size);
  MPI_Comm_free(&host);
}

static void test_cartesian(void) {
  MPI_Comm grid, row;
  int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], rank, up, down, got[4], mine, n;
  MPI_Dims_create(world_size, 2, dims);
  CHECK(dims[0] * dims[1] == world_size && dims[0] >= dims[1]);
  int six[3] = {0, 0, 0};
  MPI_Dims_create(24, 3, six);
  CHECK(six[0] == 4 && six[1] == 3 && six[2] == 2);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Comm_rank(grid, &mine);
  MPI_Cart_coords(grid, mine, 2, coords);
  MPI_Cart_rank(grid, coords, &rank);
  CHECK(rank == mine);
  MPI_Cart_shift(grid, 1, 1, &up, &down);
  CHECK(coords[1] > 0 ? up == mine - 1 : up == MPI_PROC_NULL);
  MPI_Cart_sub(grid, (int[]){0, 1}, &row);
  MPI_Comm_size(row, &n);
  CHECK(n == dims[1]);
  MPI_Neighbor_allgather(&mine, 1, MPI_INT, got, 1, MPI_INT, grid);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  CHECK(got[0] == up && got[1] == down);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

/* Around a ring, as far as an int goes; off the end of a line. */
static void test_long_shifts(void) {
  for (int period = 0; period < 2; ++period) {
    MPI_Comm grid;
    int before, after;
    const int far[] = {INT_MAX, INT_MIN, INT_MIN + 1, world_size, -1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &period, 0, &grid);
    for (int i = 0; i < 5; ++i) {
      const long long to = (long long)world_rank + far[i], from = (long long)world_rank - far[i];
      MPI_Cart_shift(grid, 0, far[i], &before, &after);
      CHECK(after == (period ? (to % world_size + world_size) % world_size
                             : (to < 0 || to >= world_size ? MPI_PROC_NULL : to)));
      CHECK(before == (period ? (from % world_size + world_size) % world_size
                              : (from < 0 || from >= world_size ? MPI_PROC_NULL : from)));
    }
    MPI_Comm_free(&grid);
  }
}

static void test_info(void) {
  MPI_Info info, other;
  int n, flag, length = 16;
  char text[64];
  MPI_Info_create(&info);
  MPI_Info_set(info, "colour", "blue");
  MPI_Info_set(info, "size", "9");
  MPI_Info_set(info, "colour", "red");
  MPI_Info_get_nkeys(info, &n);
  CHECK(n == 2);
  MPI_Info_dup(info, &other);
  MPI_Info_get_string(other, "colour", &length, text, &flag);
  CHECK(flag && length == 4 && strcmp(text, "red") == 0);
  MPI_Info_delete(info, "size");
  FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "size"));
  MPI_Info_free(&info);
  MPI_Info_free(&other);
}

/* Hints are of the communicator that they were given to, and one that nobody knows is of none. */
static void test_hints(void) {
  static const char* const keys[] = {"mpi_assert_no_any_tag", "a key that nobody knows"};
  enum { kComms = 6, kGivenOne = 0, kSetOne = 5 };
  MPI_Info info, found;
  MPI_Comm comms[kComms];
  MPI_Request q[2];
  MPI_Info_create(&info);
  MPI_Info_set(info, keys[0], "true");
  MPI_Info_set(info, keys[1], "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comms[kGivenOne]);
  MPI_Comm_dup(comms[kGivenOne], &comms[1]);
  MPI_Comm_dup_with_info(comms[kGivenOne], MPI_INFO_NULL, &comms[2]);
  MPI_Comm_idup(comms[kGivenOne], &comms[3], &q[0]);
  MPI_Comm_idup_with_info(comms[kGivenOne], MPI_INFO_NULL, &comms[4], &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[kSetOne]);
  MPI_Comm_set_info(comms[kSetOne], info);
  MPI_Info_free(&info);
  for (int i = 0; i < kComms; ++i) {
    char text[64];
    int flag = -1, length = sizeof text;
    MPI_Comm_get_info(comms[i], &found);
    MPI_Info_get_string(found, keys[0], &length, text, &flag); /* A library may ignore it. */
    CHECK(!flag || (strcmp(text, "true") == 0) == (i == kGivenOne || i == kSetOne));
    length = sizeof text;
    MPI_Info_get_string(found, keys[1], &length, text, &flag);
    CHECK(!flag);
    MPI_Info_free(&found);
    MPI_Comm_free(&comms[i]);
  }
}

static int handled;
static void handler(MPI_Comm* c, int* code, ...) {
  (void)c;
  handled = *code;
}

static void test_errors(void) {
  MPI_Errhandler h, old;
  int class_made, code, length, found;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm c;
  MPI_Comm_create_errhandler(handler, &h);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_get_errhandler(c, &old);
  CHECK(old == MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(c, h);
  MPI_Errhandler_free(&h);
  MPI_Send(&code, 1, MPI_INT, -9, 0, c);
  FAILS(MPI_ERR_RANK, handled);
  MPI_Add_error_class(&class_made);
  MPI_Add_error_code(class_made, &code);
  MPI_Add_error_string(code, "ours");
  MPI_Error_class(code, &found);
  CHECK(found == class_made && class_made > MPI_ERR_LASTCODE);
  MPI_Error_string(code, text, &length);
  CHECK(strcmp(text, "ours") == 0 && length == 4);
  MPI_Comm_call_errhandler(c, code);
  CHECK(handled == code);
  MPI_Comm_free(&c);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  test_attributes();
  test_groups();
  test_long_strides();
  test_communicators();
  test_cartesian();
  test_long_shifts();
  test_info();
  test_hints();
  test_errors();
  return end();
}
