/* The environment is the rank's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_calls.h"

extern char** environ;

int main(void) {
  char value[20];
  snprintf(value, sizeof value, "%d", sterna_test_rank());
  setenv("MINE", value, 1);
  setenv("KEPT", "other", 0);
  putenv("PUT=in");
  sterna_test_yield();
  unsetenv("GONE");
  int count = 0;
  for (char** entry = environ; *entry; entry++) count++;
  printf("%s %s %s %s %d\n", getenv("MINE"), getenv("KEPT"), getenv("PUT"),
         getenv("GONE") ? "there" : "gone", count);
  return strcmp(getenv("MINE"), value) != 0;
}
