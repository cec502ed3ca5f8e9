/* A check that ends the test program and says where. */
#ifndef STERNA_TESTS_EXPECT_H
#define STERNA_TESTS_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#endif
