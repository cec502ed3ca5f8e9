/* Data of all kinds, private to each rank. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_calls.h"

int global = 41;
static int zeroed[1000];
static double* from_constructor;
static __thread int thread_local_value = 7;
static __thread char thread_local_zero[100];
static int* pointer = &global;
static const char* names[] = {"zero", "one", "two"};
static int constructor_ran, destructors;
int (*print)(const char*, ...) = printf;

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

__attribute__((constructor)) static void construct(void) {
  constructor_ran = 1;
  from_constructor = malloc(800);
}
__attribute__((destructor)) static void destruct(void) {
  printf("destructor of rank %d, global %d\n", sterna_test_rank(), global);
}
static void at_exit_1(void) { printf("first registered, %d\n", destructors++); }
static void at_exit_2(void) { printf("second registered, %d\n", destructors++); }

static int factorial(int n, int me) {
  char pad[64];
  memset(pad, me, sizeof pad);
  if (n == 0) {
    sterna_test_yield();
    return pad[3] == (char)me ? 1 : -1000000;
  }
  return n * factorial(n - 1, me) + (pad[9] != (char)me);
}

int main(int argc, char** argv) {
  const int me = sterna_test_rank();
  int bad = 0;
  volatile int jumped = 0;
  jmp_buf buffer;
  char* text = strdup("hello");
  int* error = &errno;
  global += me;
  thread_local_value += me;
  thread_local_zero[5] = (char)me;
  for (int i = 0; i < 1000; i++) zeroed[i] = me * i;
  for (int i = 0; i < 100; i++) from_constructor[i] = me + i;
  double* big = malloc(1 << 20);
  for (int i = 0; i < 1 << 17; i++) big[i] = sqrt(me + i);
  atexit(at_exit_1);
  atexit(at_exit_2);
  if (setjmp(buffer)) {
    jumped++;
    goto after;
  }
  errno = 1000 + me;
  for (int turn = 0; turn < 5; turn++) {
    sterna_test_yield();
    if (factorial(6, me) != 720) bad |= 1;
  }
  if (errno != 1000 + me || error != &errno) bad |= 2;
  if (global != 41 + me || *pointer != 41 + me || pointer != &global) bad |= 4;
  if (thread_local_value != 7 + me || thread_local_zero[5] != (char)me) bad |= 8;
  for (int i = 0; i < 1000; i++)
    if (zeroed[i] != me * i || (i < 100 && from_constructor[i] != me + i)) bad |= 16;
  for (int i = 0; i < 1 << 17; i++)
    if (big[i] != sqrt(me + i)) bad |= 32;
  int values[5] = {5, 3, 1, 4, 2};
  qsort(values, 5, sizeof *values, compare);
  if (values[0] != 1 || values[4] != 5 || strcmp(names[2], "two") || strcmp(text, "hello") ||
      !constructor_ran)
    bad |= 64;
  fopen("/nonexistent/file", "r");
  if (errno != ENOENT) bad |= 128;
  if (argc != 3 || strcmp(argv[1], "a b") || argv[3] || !getenv("COLOUR") ||
      strcmp(getenv("COLOUR"), "blue"))
    bad |= 256;
  longjmp(buffer, 1);
after:
  print("rank %d bad %d jumped %d\n", me, bad, jumped);
  free(big);
  free(text);
  return bad ? 1 : 10 + me % 100;
}
