/* Ways to end. */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void handler(void) { puts("handler"); }

static void quick(void) {
  puts("quick");
  fflush(stdout);
}

static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  verrx(9, format, arguments);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  FILE* kept = fopen("/dev/null", "w"); /* Not closed: the end of the rank has to cope. */
  if (kept) fputs("something", kept);
  atexit(handler);
  at_quick_exit(quick);
  printf("text without line end");
  if (!strcmp(how, "exit")) exit(300);
  if (!strcmp(how, "_exit")) _exit(4);
  if (!strcmp(how, "quick_exit")) quick_exit(5);
  if (!strcmp(how, "verrx")) fail("fatal %d", 7);
  if (!strcmp(how, "error_at_line")) error_at_line(6, ENOENT, "f.c", 3, "no %s", "way");
  if (!strcmp(how, "execlp")) return execlp("true", "true", (char*)NULL) == -1 && errno == ENOSYS ? 8 : 0;
  if (!strcmp(how, "dlopen")) {
    void* library = dlopen("/not/there.so", RTLD_NOW);
    const char* text = dlerror();
    fprintf(stderr, "%d %s %d\n", library != NULL, text ? text : "nothing", dlerror() != NULL);
    if (!dlsym(RTLD_DEFAULT, "nowhere")) fprintf(stderr, "%s\n", dlerror());
  }
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "assert")) assert(argc == 77);
  return 7;
}
