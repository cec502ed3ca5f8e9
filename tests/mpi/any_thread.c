/* What MPI lets every thread call at any time (MPI 5.0, 11.4.1 and 11.6.2), whatever level of
 * threads it was given: while another thread calls it, the main thread exchanges messages, large
 * ones too, which go on while it computes. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { kLarge = 1 << 18, kRounds = 300 };

static atomic_int is_over;
static atomic_int count; /* Of the other thread's rounds. */

static void* call_without_end(void* argument) {
  (void)argument;
  while (!atomic_load(&is_over)) {
    int flag = 1, level = -1, length = 0, class = 0;
    char text[MPI_MAX_ERROR_STRING];
    char value[8] = "";
    MPI_Info info;
    MPI_Is_thread_main(&flag);
    CHECK(flag == 0);
    MPI_Initialized(&flag);
    CHECK(flag == 1);
    MPI_Query_thread(&level);
    CHECK(level >= MPI_THREAD_FUNNELED);
    MPI_Error_class(MPI_ERR_TRUNCATE, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
    CHECK(length > 0);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    length = sizeof value;
    MPI_Info_get_string(info, "key", &length, value, &flag);
    CHECK(flag == 1 && strcmp(value, "value") == 0);
    MPI_Info_free(&info);
    atomic_fetch_add(&count, 1);
  }
  return NULL;
}

/* With the ranks on both sides, in a ring. */
static void exchange(int bytes, int round, char* out, char* in) {
  const int next = (world_rank + 1) % world_size;
  const int before = (world_rank + world_size - 1) % world_size;
  MPI_Request requests[2];
  memset(out, round, (size_t)bytes);
  memset(in, ~round, (size_t)bytes);
  MPI_Irecv(in, bytes, MPI_CHAR, before, round, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, bytes, MPI_CHAR, next, round, MPI_COMM_WORLD, &requests[1]);
  const int seen = atomic_load(&count);
  for (int i = 0; i < 20000 && atomic_load(&count) == seen; ++i) {
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < bytes; ++i) {
    CHECK(in[i] == (char)round);
  }
}

int main(int argc, char** argv) {
  int level = 0, flag = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (level >= MPI_THREAD_FUNNELED && world_size <= 4) {
    char* const out = malloc(kLarge);
    char* const in = malloc(kLarge);
    pthread_t other;
    CHECK(out != NULL && in != NULL);
    CHECK(pthread_create(&other, NULL, call_without_end, NULL) == 0);
    for (int round = 0; round < kRounds; ++round) {
      exchange(kLarge, round, out, in);
      exchange(8, round, out, in);
      MPI_Is_thread_main(&flag);
      CHECK(flag == 1);
    }
    atomic_store(&is_over, 1);
    CHECK(pthread_join(other, NULL) == 0);
    free(in);
    free(out);
  }
  return end();
}
