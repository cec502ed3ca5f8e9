/* getopt and getopt_long: the same answers in every rank, whatever the others do meanwhile. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_calls.h"

int main(int argc, char** argv) {
  static const struct option longs[] = {{"size", required_argument, 0, 's'},
                                        {"verbose", no_argument, 0, 'v'},
                                        {"level", optional_argument, 0, 'l'},
                                        {0, 0, 0, 0}};
  int c, index = -1;
  while ((c = argc > 1 && !strcmp(argv[1], "-x") ? getopt(argc, argv, "xab:c::")
                                                 : getopt_long(argc, argv, "ab:vs:", longs, &index)) !=
         -1) {
    printf("%c(%s)", c, optarg ? optarg : "");
    if (c == '?') printf("[%d]", optopt);
    sterna_test_yield();
  }
  printf(" then");
  for (int i = optind; i < argc; i++) printf(" %s", argv[i]);
  printf("\n");
  return optind;
}
