/* How much memory a process has in use, for tests that bound it. */
#ifndef STERNA_TESTS_RESIDENT_H
#define STERNA_TESTS_RESIDENT_H

#include <stdio.h>
#include <unistd.h>

/* 0: not to be had. */
static long resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) {
    resident = 0;
  }
  if (file != NULL) {
    fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

#endif
