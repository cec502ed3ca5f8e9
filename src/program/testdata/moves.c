/* Is moved to another process at each pause, and must not notice. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test_calls.h"

static int values[100000];
static __thread int local = 5;
static char* text;

static void at_exit(void) { printf("at exit: %s %d\n", text, values[99999]); }

static int deep(int n) {
  char pad[200];
  memset(pad, n, sizeof pad);
  if (n == 0) {
    sterna_test_pause();
    return 0;
  }
  return deep(n - 1) + (pad[100] == (char)n);
}

int main(int argc, char** argv) {
  atexit(at_exit);
  text = strdup("kept");
  int bad = 0, options = 0, option;
  const pid_t before = getpid();
  const int* error = &errno;
  void* blocks[200];
  printf("begin ");
  errno = 77;
  sterna_test_pause();
  if (errno != 77 || error != &errno) bad |= 1;
  printf("end\n");
  for (int i = 0; i < 100000; i++) values[i] = i;
  for (int i = 0; i < 200; i++) memset(blocks[i] = malloc((size_t)i * 997 + 1), i, (size_t)i * 997 + 1);
  while ((option = getopt(argc, argv, "abc:")) != -1) {
    options = options * 10 + (option - 'a' + 1);
    sterna_test_pause();
  }
  local = 9;
  if (deep(100) != 100) bad |= 2;
  for (int i = 0; i < 100000; i++)
    if (values[i] != i) bad |= 4;
  for (int i = 0; i < 200; i++) {
    const unsigned char* block = blocks[i];
    if (block[0] != i || block[i * 997] != i) bad |= 8;
    free(blocks[i]);
  }
  if (local != 9 || options != 123) bad |= 16;
  if (!isupper('A') || strcmp(strerror(ENOENT), "No such file or directory")) bad |= 32;
  if (time(NULL) < 1000000000 || strcmp(getenv("HOME"), "/nowhere")) bad |= 64;
  if (getpid() == before) bad |= 128;
  FILE* file = fopen("/dev/null", "w");
  if (!file || fprintf(file, "x") != 1 || fclose(file)) bad |= 256;
  printf("bad %d %s\n", bad, argv[0]);
  return 3;
}
