/* What threads do to each other, the locks beyond the mutex, timers; and that misuse is told in
 * words that name the object and the rule. */
#include "sterna/control.h"

#include <errno.h>
#include <string.h>

#include "expect.h"
#include "sterna/key.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

static sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
static int cleaned; /* Written by one thread at a time. */

static void expect_detail(const char* word) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  if (strstr(text, word) == NULL) {
    fprintf(stderr, "\"%s\" is not in \"%s\"\n", word, text);
  }
  EXPECT(strstr(text, word) != NULL);
}

static sterna_thread* create(sterna_thread_options options, sterna_thread_function function,
                             void* argument) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(&options, function, argument, &thread) == STERNA_SUCCESS);
  return thread;
}

static void clean(void* argument) {
  ++*(int*)argument;
}

static void wait_for_ever(void* argument) {
  sterna_cleanup outer, inner;
  (void)argument;
  EXPECT(sterna_thread_cleanup_push(&outer, clean, &cleaned) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cleanup_push(&inner, clean, &cleaned) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cleanup_pop(0) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  for (;;) {
    sterna_thread_sleep(3600000000000ull);
  }
}

static void test_cancel(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_cancellable = 1;
  options.name = "endless";
  sterna_thread* const thread = create(options, wait_for_ever, NULL);
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join_for(thread, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_thread_cancel(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_CANCELLED);
  EXPECT(cleaned == 1);
  EXPECT(sterna_thread_join(thread) == STERNA_INVALID_ARGUMENT);
  expect_detail("joined once");
  EXPECT(sterna_thread_cancel(thread) == STERNA_INVALID_ARGUMENT);
}

static void wait_once(void* argument) {
  (void)argument;
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
}

static void give_back(void* mutex) {
  EXPECT(sterna_mutex_unlock(mutex) == STERNA_SUCCESS);
}

static void wait_with_mutex(void* argument) {
  void** const both = argument;
  sterna_cleanup cleanup;
  EXPECT(sterna_mutex_lock(both[0]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cleanup_push(&cleanup, give_back, both[0]) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  for (;;) {
    sterna_condition_wait(both[1], both[0], STERNA_FOREVER);
  }
}

static void test_cancel_in_condition(void) {
  sterna_mutex mutex = STERNA_MUTEX_INIT;
  sterna_condition condition = STERNA_CONDITION_INIT;
  void* both[] = {&mutex, &condition};
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_cancellable = 1;
  sterna_thread* const thread = create(options, wait_with_mutex, both);
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cancel(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_CANCELLED);
  EXPECT(sterna_mutex_try_lock(&mutex) == STERNA_SUCCESS); /* Its cleanup gave it back. */
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_destroy(&mutex) == STERNA_SUCCESS);
}

static void test_list_and_freeze(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = "seen";
  options.is_frozen = 1;
  options.priority = STERNA_PRIORITY_BATCH;
  options.place = "machine:0";
  options.guard_bytes = 8192;
  sterna_thread* const thread = create(options, wait_once, NULL);
  sterna_thread_info infos[8];
  size_t count = 0;
  void* base = NULL;
  size_t bytes = 0;
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join_for(thread, 2000000) == STERNA_TIMED_OUT); /* Frozen. */
  EXPECT(sterna_thread_list(infos, 8, &count) == STERNA_SUCCESS);
  EXPECT(count == 1);
  EXPECT(sterna_thread_list(infos, SIZE_MAX, &count) == STERNA_SUCCESS && count == 1);
  EXPECT(infos[0].thread == thread);
  EXPECT(strcmp(infos[0].name, "seen") == 0);
  EXPECT(infos[0].state == STERNA_THREAD_FROZEN);
  EXPECT(infos[0].priority == STERNA_PRIORITY_BATCH);
  EXPECT(infos[0].is_bound == 1 && infos[0].is_in_bubble == 0);
  EXPECT(sterna_thread_stack(thread, &base, &bytes, NULL) == STERNA_SUCCESS);
  EXPECT(base != NULL && bytes >= 60 * 1024);
  EXPECT(sterna_thread_freeze(&thread, 1, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_thread_unfreeze(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_list(NULL, 0, &count) == STERNA_SUCCESS);
  EXPECT(count == 0);
}

static void look_around(void* argument) {
  sterna_thread* const self = sterna_thread_self();
  uint32_t priority = 0;
  int before = -1;
  errno = 42;
  EXPECT(sterna_thread_set_priority(self, STERNA_PRIORITY_MAX) == STERNA_SUCCESS);
  EXPECT(sterna_thread_priority(self, &priority) == STERNA_SUCCESS);
  EXPECT(priority == STERNA_PRIORITY_MAX);
  EXPECT(sterna_thread_set_priority(self, STERNA_PRIORITY_MAX + 1) == STERNA_INVALID_ARGUMENT);
  expect_detail("thread 'looker': priority 25");
  EXPECT(sterna_thread_yield_to(self) == STERNA_BUSY);
  EXPECT(sterna_thread_stay_at("machine:0") == STERNA_SUCCESS);
  EXPECT(sterna_thread_stay_at("moon:0") == STERNA_NOT_FOUND);
  expect_detail("moon");
  EXPECT(sterna_thread_stay_at("machine:") == STERNA_NOT_FOUND);
  EXPECT(sterna_thread_stay_at("machine:-0") == STERNA_NOT_FOUND);
  EXPECT(sterna_thread_stay_at("machine:4294967296") == STERNA_NOT_FOUND); /* 0 in 32 bits. */
  EXPECT(sterna_thread_set_cancellable(0, &before) == STERNA_SUCCESS);
  EXPECT(before == 0);
  EXPECT(sterna_thread_set_cancellable(1, NULL) == STERNA_REFUSED);
  EXPECT(sterna_thread_cancel(self) == STERNA_REFUSED);
  EXPECT(sterna_thread_cleanup_pop(1) == STERNA_NOT_FOUND);
  EXPECT(sterna_thread_after_exit(clean, argument) == STERNA_SUCCESS);
  for (int i = 0; i < 20; ++i) {
    sterna_thread_sleep(10000);
  }
  EXPECT(*sterna_errno() == 42);
}

static void test_self(void) {
  int exits = 0;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = "looker";
  EXPECT(sterna_thread_join(create(options, look_around, &exits)) == STERNA_SUCCESS);
  EXPECT(exits == 1);
}

static void hold_mutex(void* argument) {
  EXPECT(sterna_mutex_lock(argument) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(argument) == STERNA_SUCCESS); /* Recursive. */
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  sterna_thread_park(STERNA_FOREVER);
  EXPECT(sterna_mutex_unlock(argument) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(argument) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(argument) == STERNA_NOT_OWNER);
  expect_detail("nobody holds it");
}

static void test_mutex_kinds(void) {
  sterna_mutex mutex;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = "holder";
  EXPECT(sterna_mutex_init(&mutex, (sterna_mutex_kind)7) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_mutex_init(&mutex, STERNA_MUTEX_RECURSIVE) == STERNA_SUCCESS);
  sterna_thread* const thread = create(options, hold_mutex, &mutex);
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_NOT_OWNER);
  expect_detail("but thread 'holder' holds it");
  EXPECT(sterna_mutex_destroy(&mutex) == STERNA_BUSY);
  expect_detail("destroyed while thread 'holder' holds it");
  EXPECT(sterna_mutex_lock_for(&mutex, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_thread_unpark(thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_destroy(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_INVALID_ARGUMENT);
  expect_detail("was destroyed");
  EXPECT(sterna_mutex_init(&mutex, STERNA_MUTEX_NORMAL) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock_for(&mutex, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
}

/* By somebody who does not write. */
static void end_writing(void* lock) {
  EXPECT(sterna_rwlock_end_write(lock) == STERNA_NOT_OWNER);
  expect_detail("its writer does that");
}

static void test_locks(void) {
  const sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_rwlock lock = STERNA_RWLOCK_INIT;
  sterna_spin_lock spin = STERNA_SPIN_LOCK_INIT;
  sterna_futex futex = STERNA_FUTEX_INIT;
  sterna_barrier barrier;
  uint64_t word = 3;
  uint32_t round = 0, count = 0;
  int is_last = 0;
  EXPECT(sterna_rwlock_read(&lock, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_read(&lock, 0) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_write(&lock, 0) == STERNA_BUSY);
  EXPECT(sterna_rwlock_write(&lock, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_rwlock_destroy(&lock) == STERNA_BUSY);
  EXPECT(sterna_rwlock_end_write(&lock) == STERNA_NOT_OWNER);
  EXPECT(sterna_rwlock_end_read(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_end_read(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_end_read(&lock) == STERNA_NOT_OWNER);
  expect_detail("nobody reads");
  EXPECT(sterna_rwlock_init(&lock, STERNA_RWLOCK_WRITERS) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_end_write(&lock) == STERNA_NOT_OWNER);
  expect_detail("nobody writes");
  EXPECT(sterna_rwlock_write(&lock, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_write(&lock, 0) == STERNA_BUSY);
  EXPECT(sterna_rwlock_write(&lock, STERNA_FOREVER) == STERNA_DEADLOCK);
  expect_detail("would wait for itself");
  EXPECT(sterna_rwlock_read(&lock, STERNA_FOREVER) == STERNA_DEADLOCK);
  EXPECT(sterna_rwlock_end_read(&lock) == STERNA_NOT_OWNER);
  EXPECT(sterna_thread_join(create(options, end_writing, &lock)) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_end_write(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_destroy(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_spin_lock_take(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_spin_lock_try(&spin) == STERNA_BUSY);
  EXPECT(sterna_spin_lock_give(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_spin_lock_give(&spin) == STERNA_NOT_OWNER);
  EXPECT(sterna_futex_wait(&futex, &word, 1, 0, STERNA_FOREVER) == STERNA_BUSY);
  EXPECT(sterna_futex_wait(&futex, &word, 1, 1, 1000000) == STERNA_TIMED_OUT);
  EXPECT(sterna_futex_wake(&futex, 1, &count) == STERNA_SUCCESS && count == 0);
  EXPECT(sterna_barrier_init_yielding(&barrier, 1) == STERNA_SUCCESS);
  EXPECT(sterna_barrier_wait(&barrier, &is_last) == STERNA_SUCCESS && is_last == 1);
  EXPECT(sterna_barrier_add(&barrier, 1, &count) == STERNA_SUCCESS && count == 2);
  EXPECT(sterna_barrier_arrive(&barrier, &round, &is_last) == STERNA_SUCCESS && is_last == 0);
  EXPECT(sterna_barrier_destroy(&barrier) == STERNA_BUSY);
  EXPECT(sterna_barrier_add(&barrier, -1, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_barrier_finish(&barrier, round) == STERNA_SUCCESS);
  EXPECT(sterna_barrier_finish(&barrier, round + 1) == STERNA_INVALID_ARGUMENT); /* Not begun. */
  expect_detail("nobody has arrived in round 2");
  EXPECT(sterna_barrier_finish(&barrier, round + 7) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_barrier_add(&barrier, -1, NULL) == STERNA_INVALID_ARGUMENT);
  expect_detail("no participant");
  EXPECT(sterna_barrier_destroy(&barrier) == STERNA_SUCCESS);
}

static void ring(void* argument) {
  EXPECT(sterna_semaphore_release(argument, 1) == STERNA_SUCCESS);
}

static void test_timers(void) {
  sterna_timer once, often;
  static sterna_timer endless; /* sterna_stop cancels it. */
  EXPECT(sterna_timer_init(&once, ring, &semaphore, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&often, ring, &semaphore, 100000) == STERNA_SUCCESS);
  EXPECT(sterna_timer_cancel(&once) == STERNA_NOT_FOUND);
  EXPECT(sterna_timer_set(&once, 1000000) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_timer_cancel(&once) == STERNA_NOT_FOUND);
  EXPECT(sterna_timer_set(&often, 0) == STERNA_SUCCESS);
  for (int i = 0; i < 5; ++i) {
    EXPECT(sterna_semaphore_acquire(&semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  EXPECT(sterna_timer_cancel(&often) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&endless, ring, &semaphore, 1000000) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&endless, 3600000000000ull) == STERNA_SUCCESS);
}

static void test_options(void) {
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.guard_bytes = 100;
  EXPECT(sterna_thread_create(&options, ring, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  expect_detail("guard_bytes");
  options.guard_bytes = 0;
  options.priority = STERNA_PRIORITY_MAX + 1;
  EXPECT(sterna_thread_create(&options, ring, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  expect_detail("priority");
  options.priority = STERNA_PRIORITY_NORMAL;
  options.place = "core:4711";
  EXPECT(sterna_thread_create(&options, ring, NULL, &thread) == STERNA_NOT_FOUND);
  expect_detail("core:4711");
  EXPECT(sterna_thread_join((sterna_thread*)&options) == STERNA_INVALID_ARGUMENT);
  expect_detail("sterna_thread_create");
  EXPECT(sterna_thread_cleanup_pop(0) == STERNA_UNSUPPORTED);
  EXPECT(sterna_thread_after_exit(clean, NULL) == STERNA_UNSUPPORTED);
  EXPECT(sterna_thread_stay_at("machine:0") == STERNA_UNSUPPORTED);
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_cancel();
  test_cancel_in_condition();
  test_list_and_freeze();
  test_self();
  test_mutex_kinds();
  test_locks();
  test_timers();
  test_options();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
