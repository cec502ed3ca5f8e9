/* Preemption by messages (setting preemption=communication): a message of another node makes an
 * urgent thread ready while another one computes without a call; that one is interrupted, and is
 * the next of its priority to go on. Run on two nodes. */
#include "expect.h"
#include "sterna/control.h"
#include "sterna/message.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kRounds = 20 };

static int arrived; /* Messages that the urgent thread has received. */
static int turns;   /* Of the thread that waits for the processor. */
static int is_over;

static void listens(void* argument) {
  (void)argument;
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(sterna_message_receive(1, round, NULL, 0, NULL) == STERNA_SUCCESS);
    __atomic_store_n(&arrived, round + 1, __ATOMIC_RELEASE);
  }
}

static void waits_its_turn(void* argument) {
  (void)argument;
  while (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) == 0) {
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    sterna_thread_yield();
  }
}

static void computes(void* argument) {
  (void)argument;
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(sterna_message_send(1, round, NULL, 0) == STERNA_SUCCESS);
    const int turns_before = __atomic_load_n(&turns, __ATOMIC_RELAXED);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) <= round) {
    }
    /* Back where it was interrupted, and nobody else of its priority has run. */
    EXPECT(__atomic_load_n(&turns, __ATOMIC_RELAXED) == turns_before);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}

static void answers(void* argument) {
  (void)argument;
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(sterna_message_receive(0, round, NULL, 0, NULL) == STERNA_SUCCESS);
    sterna_thread_sleep(2000000); /* So that the other one computes by then. */
    EXPECT(sterna_message_send(0, round, NULL, 0) == STERNA_SUCCESS);
  }
}

static sterna_thread* start(sterna_thread_function function, uint32_t priority) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_thread* thread = NULL;
  options.priority = priority;
  EXPECT(sterna_thread_create(&options, function, NULL, &thread) == STERNA_SUCCESS);
  return thread;
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 1;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  EXPECT(sterna_rank_count() == 2);
  if (sterna_rank() == 1) {
    EXPECT(sterna_thread_join(start(answers, STERNA_PRIORITY_NORMAL)) == STERNA_SUCCESS);
  } else {
    sterna_thread* const threads[] = {start(listens, STERNA_PRIORITY_REAL_TIME),
                                      start(waits_its_turn, STERNA_PRIORITY_NORMAL),
                                      start(computes, STERNA_PRIORITY_NORMAL)};
    for (int i = 0; i < 3; ++i) {
      EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
    }
  }
  const uint32_t rank = sterna_rank();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (rank == 0) {
    printf("No Errors\n");
  }
  return 0;
}
