#define _GNU_SOURCE
/* Kernel threads that end, and are joined or detached before or after that. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test_calls.h"

static int may_end;
static long its_number;

static void* run(void* result) {
  __atomic_store_n(&its_number, syscall(SYS_gettid), __ATOMIC_RELEASE);
  while (__atomic_load_n(&may_end, __ATOMIC_ACQUIRE) == 0) {
    sched_yield();
  }
  return result;
}

static pthread_t begin(const pthread_attr_t* attributes) {
  pthread_t thread;
  __atomic_store_n(&may_end, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&its_number, 0, __ATOMIC_RELEASE);
  if (pthread_create(&thread, attributes, run, &may_end) != 0) {
    printf("no thread\n");
  }
  return thread;
}

/* Until the system knows the thread no more. */
static void end(void) {
  char task[64];
  while (__atomic_load_n(&its_number, __ATOMIC_ACQUIRE) == 0) {
    sched_yield();
  }
  snprintf(task, sizeof task, "/proc/self/task/%ld", its_number);
  __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
  while (access(task, F_OK) == 0) {
    sched_yield();
  }
}

int main(void) {
  void* result = NULL;
  for (int way = 0; way < 3; ++way) {
    const pthread_t thread = begin(NULL);
    sterna_test_pause(); /* It runs. */
    end();
    sterna_test_pause(); /* It is to be joined. */
    if (way == 0) {
      printf("%d ", pthread_join(thread, &result) == 0 && result == &may_end);
    } else if (way == 1) {
      printf("%d ", pthread_tryjoin_np(thread, &result) == 0 && result == &may_end);
    } else {
      printf("%d ", pthread_detach(thread) == 0);
    }
    sterna_test_pause(); /* Nothing. */
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int way = 0; way < 2; ++way) {
    const pthread_t thread = begin(way == 0 ? &attributes : NULL);
    if (way == 1) {
      printf("%d\n", pthread_detach(thread) == 0);
    }
    sterna_test_pause(); /* It runs. */
    end();
    sterna_test_pause(); /* Nothing. */
  }
  pthread_attr_destroy(&attributes);
  return 0;
}
