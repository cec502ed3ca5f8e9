/* Barriers and rwlocks that were destroyed, or never were made: each call says so. */
#include <string.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

static void expect_detail(const char* words) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, words) != NULL);
}

static void test_destroyed(void* unused) {
  static const sterna_barrier none; /* All would pass it at once. */
  sterna_barrier barrier = none;
  sterna_rwlock lock = STERNA_RWLOCK_INIT;
  uint32_t round = 0;
  (void)unused;
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_barrier_wait(&barrier, NULL) == STERNA_INVALID_ARGUMENT);
    expect_detail("was destroyed, or was never initialised");
    EXPECT(sterna_barrier_arrive(&barrier, &round, NULL) == STERNA_INVALID_ARGUMENT);
    EXPECT(sterna_barrier_finish(&barrier, 0) == STERNA_INVALID_ARGUMENT);
    EXPECT(sterna_barrier_add(&barrier, 1, NULL) == STERNA_INVALID_ARGUMENT);
    EXPECT(sterna_barrier_destroy(&barrier) == STERNA_INVALID_ARGUMENT);
    EXPECT(sterna_barrier_init(&barrier, 1) == STERNA_SUCCESS);
    EXPECT(sterna_barrier_wait(&barrier, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_barrier_destroy(&barrier) == STERNA_SUCCESS);
  }
  EXPECT(sterna_rwlock_write(&lock, 0) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_destroy(&lock) == STERNA_BUSY);
  EXPECT(sterna_rwlock_end_write(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_destroy(&lock) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_read(&lock, STERNA_FOREVER) == STERNA_INVALID_ARGUMENT);
  expect_detail("was destroyed");
  EXPECT(sterna_rwlock_write(&lock, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rwlock_end_read(&lock) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rwlock_end_write(&lock) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rwlock_destroy(&lock) == STERNA_INVALID_ARGUMENT);
}

int main(void) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(NULL, test_destroyed, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  test_destroyed(NULL); /* On a kernel thread. */
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
