/* A barrier of the job ends at the loss of a rank, though another one, which lives, has not come.
 * Of three ranks (--on-loss go_on) rank 2 dies while rank 0 waits for rank 1, which comes only when
 * rank 0 has heard of it. */
#include <signal.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/job_barrier.h"
#include "sterna/message.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kRounds = 3 };
static sterna_job_barrier barriers[2];

static void miss_somebody(void* argument) {
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(sterna_job_barrier_wait(argument, NULL) == STERNA_CLOSED);
  }
}

/* Each of these is inside of a wait when this returns. */
static void see_blocked(sterna_thread* const* threads, size_t threads_count) {
  for (size_t blocked = 0; blocked != threads_count;) {
    sterna_thread_info infos[32];
    size_t count = 0;
    EXPECT(sterna_thread_list(infos, 32, &count) == STERNA_SUCCESS && count <= 32);
    blocked = 0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < threads_count; ++j) {
        blocked += infos[i].thread == threads[j] && infos[i].state == STERNA_THREAD_BLOCKED;
      }
    }
  }
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rank_count() == 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_job_barrier_init(&barriers[i], 1, i) == STERNA_SUCCESS);
  }
  if (sterna_rank() == 2) {
    EXPECT(sterna_job_barrier_wait(&barriers[1], NULL) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive(0, 1, NULL, 0, NULL) == STERNA_SUCCESS);
    raise(SIGKILL);
  }
  EXPECT(sterna_job_barrier_wait(&barriers[1], NULL) == STERNA_SUCCESS);
  if (sterna_rank() == 0) {
    sterna_thread* threads[2];
    for (int i = 0; i < 2; ++i) {
      EXPECT(sterna_thread_create(NULL, miss_somebody, &barriers[i], &threads[i]) ==
             STERNA_SUCCESS);
    }
    see_blocked(threads, 2);
    EXPECT(sterna_message_send(2, 1, NULL, 0) == STERNA_SUCCESS);
    for (int i = 0; i < 2; ++i) {
      EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
    }
    EXPECT(sterna_message_send(1, 2, NULL, 0) == STERNA_SUCCESS);
  } else {
    EXPECT(sterna_message_receive(0, 2, NULL, 0, NULL) == STERNA_SUCCESS);
    miss_somebody(&barriers[0]);
    miss_somebody(&barriers[1]);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (sterna_rank() == 0) {
    puts("No Errors");
  }
  return 0;
}
