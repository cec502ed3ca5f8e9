/* All the ways to write. */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test_calls.h"

int main(void) {
  const int me = sterna_test_rank();
  char line[100];
  printf("begin ");
  fflush(stdout);
  sterna_test_yield();
  puts("end");
  putchar('x');
  putc('y', stdout);
  fputs("z\n", stdout);
  for (int i = 0; i < 20; i++) {
    printf("rank %d ", me);
    sterna_test_yield();
    printf("line %d\n", i);
  }
  fflush(stdout);
  write(1, "direct ", 7);
  sterna_test_yield();
  write(STDOUT_FILENO, "write\nof two", 12);
  struct iovec pieces[2] = {{" pieces", 7}, {"\n", 1}};
  writev(1, pieces, 2);
  errno = ENOENT;
  perror("perror");
  fprintf(stderr, "standard error %d\n", me);
  warnx("warning %d", 7);
  snprintf(line, sizeof line, "%s", "kept");
  fflush(NULL);
  while (fgets(line, sizeof line, stdin)) printf("read %s", line);
  printf("no line end");
  return 0;
}
