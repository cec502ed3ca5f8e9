/* A start that fails leaves the program as it was. The argument: what is missing. */
#include <string.h>
#include <sys/resource.h>

#include "expect.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"
#include "sterna/tune.h"

static void nothing(void* argument) { (void)argument; }

int main(int argc, char** argv) {
  sterna_thread* thread = NULL;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  EXPECT(argc == 2);
  if (strcmp(argv[1], "network") == 0) {
    EXPECT(setenv("STERNA_DRIVERS", "nonsense", 1) == 0);
  } else {
    /* Addresses for the stacks of so many workers: the network is open when that is found. */
    options.workers = 1024;
    const struct rlimit few = {UINT64_C(4) << 30, UINT64_C(4) << 30};
    EXPECT(setrlimit(RLIMIT_AS, &few) == 0);
  }
  EXPECT(sterna_start(&options) != STERNA_SUCCESS);
  EXPECT(sterna_thread_create(NULL, nothing, NULL, &thread) == STERNA_NOT_STARTED);
  EXPECT(sterna_rank_count() == 1 && sterna_worker_count() == 0);
  EXPECT(sterna_start(NULL) == STERNA_UNSUPPORTED);
  EXPECT(sterna_stop() == STERNA_NOT_STARTED);
  puts("No Errors");
  return 0;
}
