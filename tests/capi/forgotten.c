/* Bubbles, and a thread, that kernel threads are joining while the program is stopped, beside
 * bubbles that nobody joins: the stop waits for the joiners and joins the others itself. The joiners
 * are held in a signal handler in the midst of their calls until all threads have long ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kBubbles = 3, kForgotten = 3, kInside = 4 };
enum { kJoiners = kBubbles + 1, kThreads = (kForgotten + kBubbles) * kInside + 1 };

static sterna_semaphore go = STERNA_SEMAPHORE_INIT;
static int ended, joining, held, may_go, is_stopped; /* Atomic. */

static int read_of(const int* variable) {
  return __atomic_load_n(variable, __ATOMIC_ACQUIRE);
}

static void wait_for(const int* variable, int value) {
  while (read_of(variable) < value) {
    usleep(1000);
  }
}

static void wait_for_go(void* unused) {
  (void)unused;
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static sterna_bubble* submit_bubble(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  for (int i = 0; i < kInside; ++i) {
    sterna_bubble* inner = NULL;
    EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_thread(inner, NULL, wait_for_go, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_bubble(bubble, inner) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  return bubble;
}

static void stay(int unused) {
  (void)unused;
  __atomic_fetch_add(&held, 1, __ATOMIC_RELEASE);
  wait_for(&may_go, 1);
}

static void* join_bubble(void* bubble) {
  __atomic_fetch_add(&joining, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  return NULL;
}

static void* join_thread(void* thread) {
  __atomic_fetch_add(&joining, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  return NULL;
}

static void* let_joiners_go(void* unused) {
  wait_for(&ended, kThreads);
  usleep(100000); /* Enough for a stop that waits for threads only. */
  EXPECT(!read_of(&is_stopped));
  __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
  return unused;
}

int main(void) {
  pthread_t joiners[kJoiners], helper;
  sterna_thread* thread = NULL;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = stay;
  EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  for (int i = 0; i < kForgotten; ++i) {
    (void)submit_bubble();
  }
  for (int i = 0; i < kBubbles; ++i) {
    EXPECT(pthread_create(&joiners[i], NULL, join_bubble, submit_bubble()) == 0);
  }
  EXPECT(sterna_thread_create(NULL, wait_for_go, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(pthread_create(&joiners[kBubbles], NULL, join_thread, thread) == 0);
  wait_for(&joining, kJoiners);
  usleep(50000); /* Now they wait in their calls. */
  for (int i = 0; i < kJoiners; ++i) {
    EXPECT(pthread_kill(joiners[i], SIGUSR1) == 0);
  }
  wait_for(&held, kJoiners);
  EXPECT(pthread_create(&helper, NULL, let_joiners_go, NULL) == 0);
  EXPECT(sterna_semaphore_release(&go, kThreads) == STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  __atomic_store_n(&is_stopped, 1, __ATOMIC_RELEASE);
  EXPECT(pthread_join(helper, NULL) == 0);
  for (int i = 0; i < kJoiners; ++i) {
    EXPECT(pthread_join(joiners[i], NULL) == 0);
  }
  puts("No Errors");
  return 0;
}
