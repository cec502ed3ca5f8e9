/* Threads of C11 that run, have ended, and are joined or detached. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "test_calls.h"

static thread_local int own = 5;
static int may_end;
static long its_number;

static int run(void* number) {
  char* heap = malloc(100);
  own += 1;
  __atomic_store_n(&its_number, syscall(SYS_gettid), __ATOMIC_RELEASE);
  while (__atomic_load_n(&may_end, __ATOMIC_ACQUIRE) == 0) {
    sched_yield();
  }
  free(heap);
  return *(int*)number * own;
}

static thrd_t begin(int* number) {
  thrd_t thread;
  __atomic_store_n(&may_end, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&its_number, 0, __ATOMIC_RELEASE);
  if (thrd_create(&thread, run, number) != thrd_success) {
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
  for (int way = 0; way < 3; ++way) {
    int result = 0;
    int number = -1 - way;
    const thrd_t thread = begin(&number);
    sterna_test_pause(); /* It runs. */
    end();
    sterna_test_pause(); /* It is to be joined. */
    if (way == 2) {
      printf("%d %d\n", thrd_detach(thread) == thrd_success, own);
    } else {
      printf("%d ", thrd_join(thread, &result) == thrd_success ? result : 0);
    }
    sterna_test_pause(); /* Nothing. */
  }
  thrd_exit(1); /* The rank ends. */
  return 3;
}
