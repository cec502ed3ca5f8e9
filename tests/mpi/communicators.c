/* Groups, communicators, intercommunicators, attributes, info, Cartesian topologies. */
#include <unistd.h>

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

/* By color on both sides, in reversed order; one color is on one side only, one rank takes none. */
static void test_inter_split(MPI_Comm inter, int side) {
  int rank, size, remote, sum = 0, value = 1 + world_rank, expected = 0, count = 0, color, flag,
                          from;
  MPI_Comm part, again;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_split(inter, rank == 0 ? 3 : (side == 0 ? 8 : 9), -world_rank, &part);
  CHECK((part == MPI_COMM_NULL) == (rank != 0));
  if (part != MPI_COMM_NULL) {
    MPI_Comm_free(&part);
  }
  color = world_rank < 2 ? 0 : (world_rank / 2) % 2;
  MPI_Comm_split(inter, world_rank == 4 ? MPI_UNDEFINED : color, -world_rank, &part);
  for (int i = 0; i < world_size; ++i) {
    const int is_same = i != 4 && (i < 2 ? 0 : (i / 2) % 2) == color;
    if (is_same && i % 2 != side) {
      expected += 1 + i;
      ++count;
    }
  }
  CHECK((part == MPI_COMM_NULL) == (world_rank == 4 || count == 0));
  if (part == MPI_COMM_NULL) {
    return;
  }
  MPI_Comm_test_inter(part, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(part, &remote);
  CHECK(remote == count);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
  CHECK(sum == expected);
  MPI_Comm_dup(part, &again);
  MPI_Comm_rank(again, &rank);
  MPI_Comm_size(again, &size);
  if (size == remote) {
    MPI_Sendrecv(&world_rank, 1, MPI_INT, rank, 4, &from, 1, MPI_INT, rank, 4, again,
                 MPI_STATUS_IGNORE);
    CHECK(from == (side == 0 ? world_rank + 1 : world_rank - 1));
  }
  MPI_Comm_free(&again);
  MPI_Comm_free(&part);
}

/* By host, where that makes sense of both sides: all of them share memory here. */
static void test_inter_split_type(MPI_Comm inter, int side) {
  int flag, remote, size, expected = 0, sum = 0, value = 1 + world_rank;
  MPI_Comm part;
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, &part);
  CHECK(part != MPI_COMM_NULL);
  MPI_Comm_test_inter(part, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(part, &size);
  CHECK(size == remote);
  for (int i = 1 - side; i < world_size; i += 2) {
    expected += 1 + i;
  }
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
  CHECK(sum == expected);
  MPI_Comm_free(&part);
  MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part);
  CHECK(part == MPI_COMM_NULL);
}

/* The upper half of each side, last first; with nobody of one side there is none. */
static void test_inter_create(MPI_Comm inter) {
  enum { kMax = 64 };
  int members[kMax], size, rank, remote, made_rank, made_size, made_remote, flag;
  MPI_Group own, part, other;
  MPI_Comm made;
  MPI_Comm_size(inter, &size);
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &remote);
  const int first = size / 2, count = size - first < kMax ? size - first : kMax;
  for (int i = 0; i < count; ++i) {
    members[i] = size - 1 - i;
  }
  MPI_Comm_group(inter, &own);
  MPI_Group_incl(own, count, members, &part);
  MPI_Comm_create(inter, part, &made);
  CHECK((made == MPI_COMM_NULL) == (rank < size - count));
  if (made != MPI_COMM_NULL) {
    MPI_Comm_test_inter(made, &flag);
    MPI_Comm_rank(made, &made_rank);
    MPI_Comm_size(made, &made_size);
    MPI_Comm_remote_size(made, &made_remote);
    CHECK(flag && made_rank == size - 1 - rank && made_size == count);
    CHECK(made_remote == remote - remote / 2);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
  }
  MPI_Comm_create(inter, world_rank % 2 == 0 ? own : MPI_GROUP_EMPTY, &made);
  CHECK(made == MPI_COMM_NULL);
  /* The other side's ranks are none of a group of this side. */
  MPI_Comm_remote_group(inter, &other);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  CHECK(MPI_Comm_create(inter, other, &made) == MPI_ERR_GROUP);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
  MPI_Group_free(&other);
  MPI_Group_free(&part);
  MPI_Group_free(&own);
}

/* Splitting it while another collective of it is under way, which some have not begun. */
static void test_inter_split_beside(MPI_Comm inter) {
  MPI_Comm fresh, part; /* Whose collectives have the first numbers. */
  MPI_Request q;
  int remote, size;
  MPI_Comm_dup(inter, &fresh);
  if (world_rank >= 2) {
    usleep(30000); /* So that the others are there: what is true does not depend on it. */
  }
  MPI_Ibarrier(fresh, &q);
  MPI_Comm_split(fresh, 0, world_rank, &part);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_remote_size(part, &size);
  CHECK(size == remote);
  MPI_Comm_free(&part);
  MPI_Comm_free(&fresh);
}

static void test_inter(void) {
  if (world_size < 2) {
    return;
  }
  MPI_Comm half, inter, merged, dup;
  int side = world_rank % 2, remote, value, flag, sum = -1;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 12, &inter);
  MPI_Comm_test_inter(inter, &flag);
  CHECK(flag);
  MPI_Comm_remote_size(inter, &remote);
  CHECK(remote == (side ? (world_size + 1) / 2 : world_size / 2));
  value = side ? 100 : 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
  CHECK(sum == remote * (side ? 1 : 100));
  MPI_Barrier(inter);
  MPI_Comm_dup(inter, &dup);
  value = side ? -1 : 42;
  int root = side ? 0 : (world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
  MPI_Bcast(&value, 1, MPI_INT, root, dup);
  CHECK(value == 42);
  MPI_Comm_free(&dup);
  MPI_Intercomm_merge(inter, side, &merged);
  CHECK(total(merged) == world_size);
  MPI_Comm_rank(merged, &value);
  CHECK(value == (side ? (world_size + 1) / 2 : 0) + world_rank / 2);
  MPI_Comm_free(&merged);
  test_inter_split(inter, side);
  test_inter_split_type(inter, side);
  test_inter_create(inter);
  test_inter_split_beside(inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
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

/* Hints are of the communicator that they were given to. */
static void test_hints(void) {
  const char* const key = "mpi_assert_no_any_tag";
  MPI_Info info, found;
  MPI_Comm hinted, others[4];
  MPI_Request q[2];
  int flag, length;
  char text[64];
  MPI_Info_create(&info);
  MPI_Info_set(info, key, "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &hinted);
  MPI_Comm_dup(hinted, &others[0]);
  MPI_Comm_dup_with_info(hinted, MPI_INFO_NULL, &others[1]);
  MPI_Comm_idup(hinted, &others[2], &q[0]);
  MPI_Comm_idup_with_info(hinted, MPI_INFO_NULL, &others[3], &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 4; ++i) {
    MPI_Comm_get_info(others[i], &found);
    length = sizeof text;
    MPI_Info_get_string(found, key, &length, text, &flag);
    CHECK(!flag);
    MPI_Info_free(&found);
    MPI_Comm_free(&others[i]);
  }
  MPI_Comm_get_info(hinted, &found);
  length = sizeof text;
  MPI_Info_get_string(found, key, &length, text, &flag);
  CHECK(flag && strcmp(text, "true") == 0);
  MPI_Info_free(&found);
  MPI_Info_free(&info);
  MPI_Comm_free(&hinted);
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
  test_communicators();
  test_inter();
  test_cartesian();
  test_info();
  test_hints();
  test_errors();
  return end();
}
