/* Arguments piece by piece: the service is told how long they are, has memory for them, and gets
 * the long piece directly there. Its answer comes by a completion, from another thread. */
#include <stdio.h>
#include <stdlib.h>
#include <sterna/completion.h>
#include <sterna/rpc.h>
#include <sterna/sterna.h>

enum { kCount = 100000 };

/* Asked with: a count, a token, so many doubles. */
static sterna_status sum(void* context, sterna_rpc_request* request) {
  int count = 0;
  sterna_completion_token token;
  (void)context;
  sterna_rpc_unpack_int(request, &count, 1, STERNA_UNPACK_EXPRESS);
  sterna_status status = sterna_rpc_unpack(request, &token, sizeof token, STERNA_UNPACK_EXPRESS);
  double* const values = malloc((size_t)count * sizeof *values);
  if (status != STERNA_SUCCESS || values == NULL) {
    return sterna_rpc_fail(request, STERNA_REFUSED, "a count, a token and the values, please");
  }
  sterna_rpc_unpack_double(request, values, (size_t)count, STERNA_UNPACK_CHEAPER);
  status = sterna_rpc_wait_data(request); /* Now the values are there. */
  double total = 0;
  for (int i = 0; i < count; ++i) {
    total += values[i];
  }
  free(values);
  return status == STERNA_SUCCESS ? sterna_completion_signal(&token, &total, sizeof total) : status;
}

int main(void) {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = STERNA_RPC_THREAD;
  options.unpacks = 1;
  if (sterna_rpc_register_with("sum", &options, sum, NULL) != STERNA_SUCCESS ||
      sterna_start(NULL) != STERNA_SUCCESS) {
    return 1;
  }
  const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
  double* const values = malloc(kCount * sizeof *values);
  const int count = kCount;
  double total = 0;
  for (int i = 0; i < kCount; ++i) {
    values[i] = i;
  }
  sterna_completion completion;
  sterna_completion_token token;
  sterna_completion_init(&completion, STERNA_ANY_NODE, &token);
  sterna_rpc_packing packing;
  sterna_rpc_begin(&packing, "sum", NULL);
  sterna_rpc_pack_int(&packing, &count, 1, STERNA_PACK_SAFER);
  sterna_rpc_pack(&packing, &token, sizeof token, STERNA_PACK_SAFER);
  sterna_rpc_pack_double(&packing, values, kCount, STERNA_PACK_CHEAPER);
  sterna_status status = sterna_rpc_post_packed(&packing, node); /* One way. */
  if (status == STERNA_SUCCESS) {
    status = sterna_completion_wait(&completion, &total, sizeof total, NULL, STERNA_FOREVER);
  }
  printf("node %u: node %u says %.0f\n", sterna_node_index(), node, total);
  free(values);
  sterna_stop();
  return status == STERNA_SUCCESS && total == 0.5 * kCount * (kCount - 1) ? 0 : 1;
}
