/* A handler that is called where no rank runs: on a kernel thread of the node. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test_calls.h"

static volatile sig_atomic_t called, result = -1;

static void handler(int signal) {
  (void)signal;
  result = (int)write(2, "", 0) + close(-1) + (getenv("NOT_THERE") ? 2 : 0);
  called = 1;
}

int main(void) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  struct sigaction action = {.sa_handler = handler}, old;
  sigaction(SIGUSR1, &action, &old);
  /* This worker does not take it, the thread that waits for the end of the rank does. */
  pthread_sigmask(SIG_BLOCK, &set, &before);
  kill(getpid(), SIGUSR1);
  while (!called) sterna_test_yield();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  sigaction(SIGUSR1, &old, NULL);
  printf("called %d, %d\n", (int)called, (int)result);
  return 0;
}
