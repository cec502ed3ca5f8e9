/* A program with more libraries than most, all copies of one: each has a number of its own, and tells
 * the program where. Moves, and finds them as they were. */
#include <stdio.h>

#include "../test_calls.h"

#if defined(IS_LIBRARY)
extern int* numbers[];
extern int number_count;
static int number = 7;
__attribute__((constructor)) static void tell(void) { numbers[number_count++] = &number; }
#else
int* numbers[200];
int number_count;

int main(void) {
  int bad = 0;
  for (int i = 0; i < number_count; ++i) {
    bad += *numbers[i] != 7;
    *numbers[i] = i;
  }
  sterna_test_pause();
  for (int i = 0; i < number_count; ++i) {
    bad += *numbers[i] != i;
  }
  printf("%d libraries, bad %d\n", number_count, bad);
  return 0;
}
#endif
