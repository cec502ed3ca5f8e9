/* A polling task for each point alone: it is called there, and at no other. */
#include <stddef.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/tasklet.h"
#include "sterna/thread.h"

enum { kIdle, kSwitch, kTick, kEnter, kForced, kPoints, kWorkersMax = 64 };

static sterna_semaphore done = STERNA_SEMAPHORE_INIT;
static int calls[kPoints]; /* Atomic, as the next three. */
static int idle_wanted;    /* Who waits for so many calls of that task; 0: nobody. */
static int computing;
static int is_over;

static int calls_at(int point) {
  return __atomic_load_n(&calls[point], __ATOMIC_RELAXED);
}

static uint32_t note_point(void* argument) {
  int* const count = argument;
  const int now = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
  const int wanted = __atomic_load_n(&idle_wanted, __ATOMIC_RELAXED);
  if (count == &calls[kIdle] && wanted != 0 && now >= wanted) {
    __atomic_store_n(&idle_wanted, 0, __ATOMIC_RELAXED); /* One poller at a time. */
    EXPECT(sterna_semaphore_release(&done, 1) == STERNA_SUCCESS);
  }
  return 0;
}

static void yield_until_over(void* argument) {
  (void)argument;
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    sterna_thread_yield();
  }
}

static void compute_until_over(void* argument) {
  (void)argument;
  __atomic_fetch_add(&computing, 1, __ATOMIC_RELAXED);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
  }
}

static sterna_thread* start_at(uint32_t worker, void (*function)(void*)) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_thread* thread = NULL;
  options.worker = worker;
  options.is_bound = 1;
  EXPECT(sterna_thread_create(&options, function, NULL, &thread) == STERNA_SUCCESS);
  return thread;
}

/* Two threads that give way to each other: every so many times that polls. */
static void visit_switches(void) {
  sterna_thread* const other = start_at(0, yield_until_over);
  while (calls_at(kSwitch) == 0) {
    sterna_thread_yield();
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  EXPECT(sterna_thread_join(other) == STERNA_SUCCESS);
  EXPECT(calls_at(kEnter) == 0 && calls_at(kForced) == 0);
}

/* Nor does the caller switch: there is nobody else. */
static void visit_forced(void) {
  const int switches = calls_at(kSwitch);
  while (calls_at(kForced) < 20) { /* An idle worker may have the turn. */
    EXPECT(sterna_poll_now(NULL) == STERNA_SUCCESS);
  }
  EXPECT(calls_at(kSwitch) == switches && calls_at(kEnter) == 0);
}

static void visit_enter(void) {
  const int switches = calls_at(kSwitch), forced = calls_at(kForced);
  sterna_message_request nothing;
  int has_come = 0;
  EXPECT(sterna_message_receive_start(&nothing, sterna_rank(), 77, NULL, 0) == STERNA_SUCCESS);
  while (calls_at(kEnter) < 20) {
    EXPECT(sterna_message_test(&nothing, &has_come, NULL) == STERNA_SUCCESS && !has_come);
  }
  EXPECT(sterna_message_cancel(&nothing) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&nothing, NULL) == STERNA_CANCELLED);
  EXPECT(calls_at(kSwitch) == switches && calls_at(kForced) == forced);
}

/* The only switches are one away and one back, too few for a poll. */
static void visit_idle(void) {
  const int switches = calls_at(kSwitch), entered = calls_at(kEnter), forced = calls_at(kForced);
  __atomic_store_n(&idle_wanted, calls_at(kIdle) + 20, __ATOMIC_RELAXED);
  EXPECT(sterna_semaphore_acquire(&done, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(calls_at(kSwitch) == switches && calls_at(kEnter) == entered);
  EXPECT(calls_at(kForced) == forced);
}

static void visit_ticks(void) {
  sterna_thread* others[kWorkersMax];
  const uint32_t workers = sterna_worker_count();
  EXPECT(workers <= kWorkersMax);
  __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
  for (uint32_t i = 1; i < workers; ++i) {
    others[i] = start_at(i, compute_until_over);
  }
  while (__atomic_load_n(&computing, __ATOMIC_RELAXED) < (int)workers - 1) {
  }
  const int switches = calls_at(kSwitch), entered = calls_at(kEnter), forced = calls_at(kForced);
  const int ticks = calls_at(kTick);
  while (calls_at(kTick) < ticks + 3) {
  }
  EXPECT(calls_at(kSwitch) == switches && calls_at(kEnter) == entered);
  EXPECT(calls_at(kForced) == forced);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 1; i < workers; ++i) {
    EXPECT(sterna_thread_join(others[i]) == STERNA_SUCCESS);
  }
}

/* On the first worker, with nobody beside it but whom it starts. The first of many switches that
 * polls comes first: what follows on this worker is too few of them for the next. */
static void visit_all(void* argument) {
  (void)argument;
  visit_switches();
  visit_forced();
  visit_enter();
  visit_idle();
  visit_ticks();
}

int main(void) {
  static const uint32_t points[kPoints] = {STERNA_POLL_IDLE, STERNA_POLL_SWITCH, STERNA_POLL_TICK,
                                           STERNA_POLL_ENTER, STERNA_POLL_FORCED};
  sterna_poll_task tasks[kPoints];
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  for (int i = 0; i < kPoints; ++i) {
    EXPECT(sterna_poll_task_init(&tasks[i], note_point, &calls[i], points[i], 1) == STERNA_SUCCESS);
    EXPECT(sterna_poll_task_set_period(&tasks[i], 100000) == STERNA_SUCCESS);
    EXPECT(sterna_poll_task_add(&tasks[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_thread_join(start_at(0, visit_all)) == STERNA_SUCCESS);
  for (int i = 0; i < kPoints; ++i) {
    EXPECT(sterna_poll_task_remove(&tasks[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
