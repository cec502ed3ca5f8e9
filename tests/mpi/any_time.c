/* What MPI lets every thread do at any time: before MPI_Init, between, and after MPI_Finalize, at
 * the lowest level of threads. Info objects, codes and texts of errors, handlers of sessions,
 * versions. */
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kCodes = 60 };

static MPI_Info kept;
static MPI_Session_errhandler_function* const no_function = NULL;
static int kept_class, kept_code;

static void on_error(MPI_Session* session, int* code, ...) {
  (void)session, (void)code;
}

static void use_infos(void) {
  MPI_Info info = MPI_INFO_NULL, copy = MPI_INFO_NULL;
  char value[20] = "", key[MPI_MAX_INFO_KEY] = "";
  int flag = 0, count = -1, bytes = sizeof value;
  MPI_Info_create(&info);
  MPI_Info_set(info, "one", "first");
  MPI_Info_set(info, "two", "second");
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "one");
  MPI_Info_get_nkeys(info, &count);
  CHECK(count == 1);
  MPI_Info_get_nthkey(copy, 0, key);
  CHECK(strcmp(key, "one") == 0);
  MPI_Info_get(copy, "two", 19, value, &flag);
  CHECK(flag && strcmp(value, "second") == 0);
  MPI_Info_get_string(copy, "one", &bytes, value, &flag);
  CHECK(flag && bytes == 6 && strcmp(value, "first") == 0);
  MPI_Info_get_nkeys(MPI_INFO_ENV, &count);
  CHECK(count >= 0);
  CHECK(MPI_Info_fromint(MPI_Info_toint(copy)) == copy);
  MPI_Info_free(&info);
  MPI_Info_free(&copy);
  CHECK(info == MPI_INFO_NULL && copy == MPI_INFO_NULL);
}

static void use_the_rest(int is_initialized, int is_finalized) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  char text[MPI_MAX_ERROR_STRING], version[MPI_MAX_LIBRARY_VERSION_STRING];
  int flag = -1, major = 0, minor = 0, length = 0, class = -1;
  MPI_Initialized(&flag);
  CHECK(flag == is_initialized);
  MPI_Finalized(&flag);
  CHECK(flag == is_finalized);
  MPI_Get_version(&major, &minor);
  CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
  MPI_Get_library_version(version, &length);
  CHECK(length == (int)strlen(version) && length > 0);
  MPI_Error_class(MPI_ERR_RANK, &class);
  CHECK(class == MPI_ERR_RANK);
  MPI_Error_string(MPI_ERR_RANK, text, &length);
  CHECK(strstr(text, "MPI_ERR_RANK") != NULL && length == (int)strlen(text));
  MPI_Session_create_errhandler(on_error, &handler);
  CHECK(handler != MPI_ERRHANDLER_NULL);
  CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(handler)) == handler);
  MPI_Errhandler_free(&handler);
  CHECK(handler == MPI_ERRHANDLER_NULL);
}

/* Codes and texts of its own, beside those of the other threads. */
static void* add_codes(void* argument) {
  int* const codes = argument;
  char wanted[40], text[MPI_MAX_ERROR_STRING];
  for (int i = 0; i < kCodes; ++i) {
    int length = 0, class = -1;
    if (i % 10 == 0) {
      MPI_Add_error_class(&codes[i]);
    } else {
      MPI_Add_error_code(codes[i / 10 * 10], &codes[i]);
    }
    snprintf(wanted, sizeof wanted, "text of code %d", codes[i]);
    MPI_Add_error_string(codes[i], wanted);
    MPI_Error_string(codes[i], text, &length);
    CHECK(strcmp(text, wanted) == 0);
    MPI_Error_class(codes[i], &class);
    CHECK(class == codes[i / 10 * 10]);
  }
  use_infos();
  return NULL;
}

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

static void add_from_threads(void) {
  static int codes[kThreads * kCodes];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, add_codes, &codes[i * kCodes]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < kThreads * kCodes; ++i) {
    char wanted[40], text[MPI_MAX_ERROR_STRING];
    int length = 0;
    snprintf(wanted, sizeof wanted, "text of code %d", codes[i]);
    MPI_Error_string(codes[i], text, &length);
    CHECK(strcmp(text, wanted) == 0);
    MPI_Remove_error_string(codes[i]);
  }
  qsort(codes, kThreads * kCodes, sizeof codes[0], compare);
  for (int i = 1; i < kThreads * kCodes; ++i) {
    CHECK(codes[i] != codes[i - 1]);
  }
}

/* What was made before MPI_Init is there between and afterwards. */
static void keep(void) {
  MPI_Info_create(&kept);
  MPI_Info_set(kept, "key", "made before MPI_Init");
  MPI_Add_error_class(&kept_class);
  MPI_Add_error_code(kept_class, &kept_code);
  MPI_Add_error_string(kept_code, "a code of before");
}

static void look_at_what_was_kept(void) {
  char value[40] = "", text[MPI_MAX_ERROR_STRING] = "";
  int flag = 0, length = 0, class = -1;
  MPI_Info_get(kept, "key", 39, value, &flag);
  CHECK(flag && strcmp(value, "made before MPI_Init") == 0);
  MPI_Error_class(kept_code, &class);
  CHECK(class == kept_class);
  MPI_Error_string(kept_code, text, &length);
  CHECK(strcmp(text, "a code of before") == 0);
}

/* A communicator takes the hints, ignores those it does not know and does not return them, and its handler hears of errors with a code of before. */
static void use_what_was_kept(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info found = MPI_INFO_NULL;
  int flag = -1, length = 0, *last_code = NULL;
  MPI_Comm_dup_with_info(MPI_COMM_SELF, kept, &comm);
  MPI_Comm_get_info(comm, &found);
  MPI_Info_get_valuelen(found, "key", &length, &flag);
  CHECK(!flag);
  MPI_Info_free(&found);
  MPI_Comm_free(&comm);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_code, &flag);
  CHECK(flag && *last_code >= kept_code);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(kept, "", "the empty key"));
  FAILS(MPI_ERR_ARG, MPI_Session_create_errhandler(no_function, &(MPI_Errhandler){0}));
}

int main(int argc, char** argv) {
  use_infos();
  use_the_rest(0, 0);
  add_from_threads();
  keep();
  begin(&argc, &argv);
  look_at_what_was_kept();
  use_what_was_kept();
  use_infos();
  use_the_rest(1, 0);
  add_from_threads();
  const int is_wrong = end();
  use_infos();
  use_the_rest(1, 1);
  add_from_threads();
  look_at_what_was_kept();
  MPI_Info_free(&kept);
  return is_wrong || error_count != 0;
}
