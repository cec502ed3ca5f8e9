/* Keys: as many as there may be, values of threads and of other threads, destructors. */
#include <string.h>

#include "expect.h"
#include "sterna/key.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"

static sterna_key keys[STERNA_KEYS_MAX];
static char values[STERNA_KEYS_MAX];
static sterna_semaphore go = STERNA_SEMAPHORE_INIT;
static sterna_semaphore here = STERNA_SEMAPHORE_INIT;
static int destroyed; /* Atomic. */

static void expect_detail(const char* words) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  if (strstr(text, words) == NULL) {
    fprintf(stderr, "not true: \"%s\" has \"%s\"\n", text, words);
    exit(1);
  }
}

static void destroy(void* value) {
  EXPECT(*(char*)value == 1);
  __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

/* Sets itself again as often as it may: four rounds, not more. */
static void set_again(void* value) {
  __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
  EXPECT(sterna_key_set(keys[STERNA_KEYS_MAX - 1], value) == STERNA_SUCCESS);
}

static void owner(void* argument) {
  for (uint32_t i = 0; i < STERNA_KEYS_MAX; ++i) {
    EXPECT(sterna_key_get(keys[i]) == NULL);
    EXPECT(sterna_key_set(keys[i], &values[i]) == STERNA_SUCCESS);
  }
  *(sterna_thread**)argument = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  for (uint32_t i = 0; i < STERNA_KEYS_MAX; ++i) {
    EXPECT(sterna_key_get(keys[i]) == &values[i]);
  }
}

static void expect_values(const sterna_thread* thread) {
  void* value = NULL;
  for (uint32_t i = 0; i < STERNA_KEYS_MAX; ++i) {
    EXPECT(sterna_key_get_of(keys[i], thread, &value) == STERNA_SUCCESS);
    EXPECT(value == &values[i]);
  }
}

static void look(void* thread) {
  void* value = &value;
  expect_values(thread);
  EXPECT(sterna_key_get(keys[0]) == NULL);
  EXPECT(sterna_key_get_of(keys[0], sterna_thread_self(), &value) == STERNA_SUCCESS);
  EXPECT(value == NULL);
}

/* Threads that end beside others that look at them: a value, or none, never anything else. */
static void come_and_go(void* unused) {
  (void)unused;
  EXPECT(sterna_key_set(keys[700], &values[700]) == STERNA_SUCCESS);
  sterna_thread_yield();
}

static void look_at_those_who_end(void) {
  for (int i = 0; i < 2000; ++i) {
    sterna_thread* thread = NULL;
    void* value = NULL;
    EXPECT(sterna_thread_create(NULL, come_and_go, NULL, &thread) == STERNA_SUCCESS);
    for (int k = 0; k < 20; ++k) {
      EXPECT(sterna_key_get_of(keys[700], thread, &value) == STERNA_SUCCESS);
      EXPECT(value == NULL || value == &values[700]);
    }
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
}

int main(void) {
  sterna_thread* thread = NULL;
  sterna_thread* looker = NULL;
  sterna_thread* itself = NULL;
  sterna_key more = 0;
  void* value = NULL;
  memset(values, 1, sizeof values);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  for (uint32_t i = 0; i < STERNA_KEYS_MAX; ++i) {
    EXPECT(sterna_key_create(&keys[i], i == STERNA_KEYS_MAX - 1 ? set_again : destroy) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_key_create(&more, NULL) == STERNA_OUT_OF_MEMORY);
  expect_detail("1024 keys");
  EXPECT(sterna_thread_create(NULL, owner, &itself, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(itself == thread);
  expect_values(thread); /* From a kernel thread, which has none itself. */
  EXPECT(sterna_key_get(keys[0]) == NULL);
  EXPECT(sterna_key_set(keys[0], values) == STERNA_UNSUPPORTED);
  expect_detail("kernel thread");
  EXPECT(sterna_thread_create(NULL, look, thread, &looker) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(looker) == STERNA_SUCCESS);
  EXPECT(destroyed == 0); /* Who has set nothing destroys nothing. */
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(destroyed == STERNA_KEYS_MAX - 1 + 4);
  EXPECT(sterna_key_get_of(keys[0], thread, &value) == STERNA_INVALID_ARGUMENT);
  expect_detail("gone");
  look_at_those_who_end();
  EXPECT(sterna_key_delete(keys[5]) == STERNA_SUCCESS);
  EXPECT(sterna_key_create(&more, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
