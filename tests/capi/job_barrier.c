/* Barriers of all ranks, and of threads of all of them. Who has come is counted in a file that all
 * ranks have: a byte each. Argument: the file. */
#include "sterna/job_barrier.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kThreads = 3, kRounds = 50 };
static int file;
static sterna_job_barrier barrier;
static int last_count[kRounds + 1]; /* Atomic: who was told to be the last of its rank. */

static long come_so_far(void) {
  struct stat info;
  EXPECT(fstat(file, &info) == 0);
  return (long)info.st_size;
}

/* `each`: participants of all ranks. */
static void meet(long each, long before) {
  for (int round = 0; round < kRounds; ++round) {
    int is_last = 0;
    EXPECT(write(file, "x", 1) == 1);
    EXPECT(sterna_job_barrier_wait(&barrier, &is_last) == STERNA_SUCCESS);
    const long here = come_so_far() - before;
    EXPECT(here >= each * (round + 1)); /* Nobody leaves early. */
    EXPECT(here <= each * (round + 2)); /* Nobody is a round ahead. */
    __atomic_fetch_add(&last_count[round], is_last, __ATOMIC_RELAXED);
  }
}

static void meet_as_one_of_many(void* argument) {
  const long before = *(const long*)argument;
  meet((long)kThreads * sterna_rank_count(), before);
}

static void test_threads(long before) {
  sterna_thread* threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_create(NULL, meet_as_one_of_many, &before, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
}

static void test_refusals(void) {
  sterna_job_barrier unmade = {{0}};
  EXPECT(sterna_job_barrier_init(NULL, 1, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_init(&unmade, 0, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_init(&unmade, 1, -1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_wait(&unmade, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_destroy(&unmade) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_destroy(NULL) == STERNA_INVALID_ARGUMENT);
}

int main(int argc, char** argv) {
  sterna_job_barrier early;
  EXPECT(argc > 1);
  EXPECT(sterna_job_barrier_init(&early, 1, 0) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_refusals();
  sterna_job_barrier other; /* Another number, at the same time. */
  EXPECT(sterna_job_barrier_init(&barrier, 1, 7) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_init(&other, 1, 8) == STERNA_SUCCESS);
  if (sterna_rank() == 0) {
    (void)unlink(argv[1]);
  }
  EXPECT(sterna_job_barrier_wait(&other, NULL) == STERNA_SUCCESS);
  file = open(argv[1], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  EXPECT(file >= 0);
  EXPECT(sterna_job_barrier_wait(&other, NULL) == STERNA_SUCCESS);
  meet(sterna_rank_count(), 0);
  EXPECT(sterna_job_barrier_wait(&other, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_destroy(&barrier) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_init(&barrier, kThreads, 7) == STERNA_SUCCESS);
  test_threads((long)kRounds * sterna_rank_count());
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(last_count[round] == 2); /* Once alone, once one of the threads. */
  }
  EXPECT(sterna_job_barrier_destroy(&barrier) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_destroy(&other) == STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
