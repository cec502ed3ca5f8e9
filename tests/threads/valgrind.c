/* Threads that switch all the time on stacks of their own, with large frames: for valgrind, which
 * must be told of each stack. Exit code 77: it was not told, as its header was absent at build
 * time. */
#include <stdio.h>
#include <sterna/key.h>
#include <sterna/sterna.h>
#include <sterna/thread.h>

enum { kThreads = 50, kTurns = 20, kFrame = 20000 };

static sterna_key key;
static int counts[kThreads];

static void work(void* argument) {
  volatile char frame[kFrame];
  frame[0] = 1;
  frame[kFrame - 1] = 2;
  for (int i = 0; i < kTurns; ++i) {
    ++*(int*)argument;
    sterna_thread_yield();
  }
  sterna_key_set(key, argument);
}

int main(void) {
#if !__has_include(<valgrind/valgrind.h>)
  return 77;
#endif
  sterna_thread* threads[kThreads];
  if (sterna_start(NULL) != STERNA_SUCCESS || sterna_key_create(&key, NULL) != STERNA_SUCCESS) {
    return 1;
  }
  for (int i = 0; i < kThreads; ++i) {
    if (sterna_thread_create(NULL, work, &counts[i], &threads[i]) != STERNA_SUCCESS) {
      return 2;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    if (sterna_thread_join(threads[i]) != STERNA_SUCCESS || counts[i] != kTurns) {
      return 3;
    }
  }
  if (sterna_stop() != STERNA_SUCCESS) {
    return 4;
  }
  puts("No Errors");
  return 0;
}
