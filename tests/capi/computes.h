/* One thread that computes without a call until another one has run. */
#ifndef STERNA_TESTS_COMPUTES_H
#define STERNA_TESTS_COMPUTES_H

#include <stddef.h>

static int may_end;

static void computes(void* argument) {
  (void)argument;
  while (!__atomic_load_n(&may_end, __ATOMIC_RELAXED)) {
  }
}

static void ends_it(void* argument) {
  (void)argument;
  __atomic_store_n(&may_end, 1, __ATOMIC_RELAXED);
}

#endif
