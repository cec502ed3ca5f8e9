/* Calls a service of the next node many times, and says how long a call takes. */
#include <sterna/rpc.h>
#include <sterna/sterna.h>
#include <stdio.h>
#include <time.h>

enum { kCalls = 1000 };

/* QUICK: it runs inside the poll that found the request, and may not wait. */
static sterna_status add_one(void* context, sterna_rpc_request* request) {
  (void)context;
  size_t bytes = 0;
  const int* ball = sterna_rpc_arguments(request, &bytes);
  if (bytes != sizeof *ball) {
    return STERNA_INVALID_ARGUMENT;
  }
  const int returned = *ball + 1;
  return sterna_rpc_reply(request, &returned, sizeof returned);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void) {
  /* Services are registered before the start, on all nodes alike. */
  sterna_status status = sterna_rpc_register("add one", STERNA_RPC_QUICK, add_one, NULL);
  if (status == STERNA_SUCCESS) {
    status = sterna_start(NULL);
  }
  const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
  int ball = 0;
  const double start = now();
  for (int i = 0; i < kCalls && status == STERNA_SUCCESS; ++i) {
    status = sterna_rpc_call_for(node, "add one", &ball, sizeof ball, &ball, sizeof ball, NULL,
                                 STERNA_FOREVER);
  }
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "node %u: %s\n", sterna_node_index(), sterna_status_text(status));
    return 1;
  }
  printf("node %u: %d calls of node %u, %.1f us each\n", sterna_node_index(), ball, node,
         (now() - start) * 1e6 / kCalls);
  sterna_stop();
  return ball == kCalls ? 0 : 1;
}
