#define _GNU_SOURCE
/* What libc has once for a process, each rank has for itself: random numbers, a table, the place of strtok.
 * Other ranks do the same between any two calls. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_calls.h"

int main(void) {
  const int rank = sterna_test_rank();
  int bad = 0;
  struct random_data known = {0};
  char known_state[128], own_state[64];
  int32_t number;
  struct drand48_data known_48;
  double fraction;
  initstate_r(1, known_state, sizeof known_state, &known); /* How every process begins. */
  for (int i = 0; i < 10; ++i) {
    random_r(&known, &number);
    bad |= (i % 2 == 0 ? random() : rand()) != number;
    sterna_test_yield();
  }
  srand((unsigned)rank + 5);
  srand48(rank);
  srandom_r((unsigned)rank + 5, &known);
  srand48_r(rank, &known_48);
  for (int i = 0; i < 10; ++i) {
    sterna_test_yield();
    random_r(&known, &number);
    drand48_r(&known_48, &fraction);
    bad |= (rand() != number) * 2 | (drand48() != fraction) * 4;
  }
  char* const before = initstate((unsigned)rank, own_state, sizeof own_state);
  sterna_test_yield();
  random();
  bad |= (setstate(before) != own_state) * 8;
  random_r(&known, &number);
  bad |= (random() != number) * 8;

  ENTRY item = {(char*)"key", (char*)"value"};
  bad |= (hcreate(10) == 0) * 16;
  sterna_test_yield();
  bad |= (hsearch(item, FIND) != NULL || hsearch(item, ENTER) == NULL) * 16;
  hdestroy();

  char text[] = "a:b:c";
  int count = 0;
  for (char* word = strtok(text, ":"); word != NULL; word = strtok(NULL, ":")) {
    bad |= (*word != 'a' + count++) * 32;
    sterna_test_yield();
  }
  printf("bad %d, %d words\n", bad, count);
  return 0;
}
