#define _GNU_SOURCE
/* Uses most of its stack, in the deepest call of which others run; qsort with a callback; ctype and
   locale functions; time. */
#include <alloca.h>
#include <ctype.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "test_calls.h"

static int calls;
static int descending(const void* a, const void* b) {
  calls++;
  return *(const int*)b - *(const int*)a;
}

static long deep(int n) {
  volatile char pad[1000];
  memset((char*)pad, n, sizeof pad);
  if (n == 0) {
    sterna_test_yield();
    return 0;
  }
  const long below = deep(n - 1);
  return below + (pad[500] == (char)n);
}

int main(void) {
  int bad = 0;
  if (deep(3000) != 3000) bad |= 1;
  int values[1000];
  for (int i = 0; i < 1000; i++) values[i] = (i * 7919) % 1000;
  qsort(values, 1000, sizeof *values, descending);
  if (calls == 0 || values[0] != 999 || values[999] != 0) bad |= 2;
  if (!isalpha('a') || toupper('b') != 'B' || isdigit('x')) bad |= 4;
  if (strcmp(setlocale(LC_ALL, NULL), "C") || localeconv()->decimal_point[0] != '.') bad |= 8;
  struct timeval now;
  gettimeofday(&now, NULL);
  if (labs(now.tv_sec - time(NULL)) > 1 || localtime(&now.tv_sec)->tm_year < 120) bad |= 16;
  usleep(1000);
  pthread_mutex_t mutex;
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &recursive);
  pthread_mutex_lock(&mutex);
  sterna_test_pause();
  if (pthread_mutex_trylock(&mutex) || pthread_mutex_unlock(&mutex) ||
      pthread_mutex_unlock(&mutex))
    bad |= 32;
  pthread_attr_t attributes;
  void* base;
  size_t bytes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &base, &bytes);
  if ((char*)&bytes < (char*)base || (char*)&bytes > (char*)base + bytes) bad |= 64;
  printf("bad %d\n", bad);
  return bad;
}
