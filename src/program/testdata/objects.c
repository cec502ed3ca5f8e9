#define _GNU_SOURCE
/* Acquires objects of the process, one kind at a time, and gives them back. */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "test_calls.h"

int main(void) {
  char name[64], pattern[] = "/tmp/sterna_test_XXXXXX";
  snprintf(name, sizeof name, "/sterna_test_%d", getpid());
  int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  int* memory = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  sterna_test_pause(); /* 1: shared memory */
  memory[0] = 1;
  shmdt(memory);
  sem_t* semaphore = sem_open(name, O_CREAT, 0600, 1);
  sem_unlink(name);
  sterna_test_pause(); /* 2: a semaphore */
  sem_close(semaphore);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_NONE};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  sterna_test_pause(); /* 3: a timer */
  timer_delete(timer);
  sigset_t none;
  sigemptyset(&none);
  int fds[5] = {mkostemp(pattern, O_CLOEXEC), signalfd(-1, &none, 0), inotify_init1(0),
                shm_open(name, O_CREAT | O_RDWR, 0600), fcntl(0, F_DUPFD_CLOEXEC, 3)};
  unlink(pattern);
  shm_unlink(name);
  sterna_test_pause(); /* 4: descriptors */
  int bad = 0;
  for (int i = 0; i < 5; i++) bad |= close(fds[i]);
  char* text;
  size_t bytes;
  char buffer[16];
  FILE* first = fmemopen(buffer, sizeof buffer, "w");
  FILE* second = open_memstream(&text, &bytes);
  fputs("text", second);
  sterna_test_pause(); /* 5: streams */
  fclose(first);
  fclose(second);
  bad |= bytes != 4;
  free(text);
  sterna_test_pause(); /* 6: nothing */
  return bad;
}
