/* Datatypes that are taken apart: what MPI_Type_get_contents gives is the program's to free, and what
 * it does to that is not done to the types that it came from. And the names of predefined ones. */
#include "check.h"

static int deletions;
static int drop(MPI_Datatype type, int key, void* value, void* extra) {
  (void)type, (void)key, (void)value, (void)extra;
  ++deletions;
  return MPI_SUCCESS;
}

/* The cells of a row of 6 that a type of 3 ints with gaps reaches. */
static void check_sends(MPI_Datatype type, int elements) {
  int from[12], into[12];
  for (int i = 0; i < 12; ++i) {
    from[i] = i;
    into[i] = -1;
  }
  MPI_Sendrecv(from, 1, type, 0, 1, into, elements, MPI_INT, 0, 1, MPI_COMM_SELF,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < 12; ++i) {
    CHECK(into[i] == (i >= elements ? -1 : i < 3 ? 2 * i : 2 * i - 1));
  }
}

static void test_attributes(void) {
  int key, flag = 0, integers[4], bytes = 0;
  MPI_Aint addresses[1];
  void* value = NULL;
  MPI_Datatype inner, outer, given[2], again;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, drop, &key, NULL);
  MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
  MPI_Type_commit(&inner);
  MPI_Type_set_attr(inner, key, &deletions);
  MPI_Type_set_name(inner, "inner");
  MPI_Type_contiguous(2, inner, &outer);
  MPI_Type_commit(&outer);
  for (int i = 0; i < 2; ++i) {
    MPI_Type_get_contents(outer, 1, 0, 1, integers, addresses, &given[i]);
    CHECK(integers[0] == 2 && given[i] != inner);
    MPI_Type_size(given[i], &bytes);
    CHECK(bytes == 3 * (int)sizeof(int));
    MPI_Type_get_attr(given[i], key, &value, &flag);
    CHECK(!flag);
  }
  CHECK(given[0] != given[1]);
  MPI_Type_get_contents(given[0], 3, 0, 1, integers, addresses, &again);
  CHECK(integers[0] == 3 && integers[1] == 1 && integers[2] == 2 && again == MPI_INT);
  MPI_Type_free(&given[0]);
  MPI_Type_get_attr(inner, key, &value, &flag);
  CHECK(deletions == 0 && flag && value == &deletions);
  MPI_Type_free(&inner);
  CHECK(deletions == 1);
  MPI_Type_commit(&given[1]);
  check_sends(given[1], 3);
  check_sends(outer, 6);
  MPI_Type_free(&outer);
  check_sends(given[1], 3); /* It needs none of those that are gone. */
  MPI_Type_free(&given[1]);
  MPI_Type_free_keyval(&key);
}

/* Of several, predefined ones are given as they are. */
static void test_several(void) {
  int lengths[3] = {1, 1, 2}, integers[4];
  MPI_Aint places[3] = {0, 8, 40}, addresses[3];
  MPI_Datatype pair, all, given[3], parts[3] = {MPI_DOUBLE, MPI_DATATYPE_NULL, MPI_CHAR};
  MPI_Type_contiguous(2, MPI_LONG, &pair);
  parts[1] = pair;
  MPI_Type_create_struct(3, lengths, places, parts, &all);
  MPI_Type_free(&pair);
  MPI_Type_get_contents(all, 4, 3, 3, integers, addresses, given);
  CHECK(given[0] == MPI_DOUBLE && given[1] != parts[1] && given[2] == MPI_CHAR);
  MPI_Type_free(&given[1]);
  MPI_Type_get_contents(all, 4, 3, 3, integers, addresses, given);
  CHECK(integers[0] == 3 && integers[3] == 2 && addresses[2] == 40);
  MPI_Type_free(&given[1]);
  MPI_Type_free(&all);
}

/* Of two names for one handle the standard makes one the synonym of the other: MPI-5.0 §3.2.2. */
static void test_names(void) {
  static const struct {
    MPI_Datatype type;
    const char* name;
  } rows[] = {
      {MPI_INT, "MPI_INT"},
      {MPI_LONG_LONG, "MPI_LONG_LONG_INT"},
      {MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT"},
      {MPI_C_COMPLEX, "MPI_C_COMPLEX"},
      {MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX"},
      {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX"},
      {MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    MPI_Type_get_name(rows[i].type, name, &length);
    CHECK(strcmp(name, rows[i].name) == 0 && length == (int)strlen(name));
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  test_attributes();
  test_several();
  test_names();
  return end();
}
