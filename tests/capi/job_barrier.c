/* Barriers of all ranks, and of threads of all of them. Who has come is counted in a file that all
 * ranks have: a byte each. Argument: the file. */
#include "sterna/job_barrier.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/session.h"
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

/* Two barriers with one number, one of them in a session: who comes to one is not taken for having
 * come to the other. Ranks come in different orders, a thread to each. */
static sterna_job_barrier of_session, of_none;
static int come; /* Atomic. */

static void wait_at(void* argument) {
  EXPECT(sterna_job_barrier_wait(argument, NULL) == STERNA_SUCCESS);
  __atomic_fetch_add(&come, 1, __ATOMIC_RELEASE);
}

static void test_session(void) {
  sterna_session session;
  sterna_job_barrier unmade = {{0}};
  sterna_thread* thread = NULL;
  memset(&session, 0, sizeof session);
  EXPECT(sterna_job_barrier_init(&of_session, 1, 5) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_init(&of_none, 1, 5) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_set_session(&of_session, &session) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_open(&session, "test.barriers") == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_set_session(&unmade, &session) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_job_barrier_set_session(&of_session, &session) == STERNA_SUCCESS);
  EXPECT(sterna_session_close(&session) == STERNA_SUCCESS);
  for (int round = 0; round < kRounds; ++round) {
    come = 0;
    if (sterna_rank_count() != 1) {
      /* Rank 0 waits at one; the others have only come to the other one. */
      if (sterna_rank() == 0) {
        EXPECT(sterna_thread_create(NULL, wait_at, &of_none, &thread) == STERNA_SUCCESS);
        EXPECT(sterna_job_barrier_wait(&of_session, NULL) == STERNA_SUCCESS);
        EXPECT(__atomic_load_n(&come, __ATOMIC_ACQUIRE) == 0);
        EXPECT(sterna_message_send(1, 9, NULL, 0) == STERNA_SUCCESS);
        EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
      } else {
        EXPECT(sterna_job_barrier_wait(&of_session, NULL) == STERNA_SUCCESS);
        if (sterna_rank() == 1) {
          EXPECT(sterna_message_receive(0, 9, NULL, 0, NULL) == STERNA_SUCCESS);
        }
        wait_at(&of_none);
      }
    } else {
      wait_at(&of_session);
      wait_at(&of_none);
    }
  }
  EXPECT(sterna_job_barrier_set_session(&of_session, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_destroy(&of_session) == STERNA_SUCCESS);
  EXPECT(sterna_job_barrier_destroy(&of_none) == STERNA_SUCCESS);
}

int main(int argc, char** argv) {
  sterna_job_barrier early;
  EXPECT(argc > 1);
  EXPECT(sterna_job_barrier_init(&early, 1, 0) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_refusals();
  test_session();
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
