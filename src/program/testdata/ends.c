/* Ways to end. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void handler(void) { puts("handler"); }

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  FILE* kept = fopen("/dev/null", "w"); /* Not closed: the end of the rank has to cope. */
  if (kept) fputs("something", kept);
  atexit(handler);
  printf("text without line end");
  if (!strcmp(how, "exit")) exit(300);
  if (!strcmp(how, "_exit")) _exit(4);
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "assert")) assert(argc == 77);
  return 7;
}
