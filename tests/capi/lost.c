/* A node that dies while others call it and wait for it. The launcher ends the job, since a node
 * has failed; rank 0 says what it saw, if it has the time. */
#include <signal.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static sterna_status die(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  raise(SIGKILL);
  return STERNA_SUCCESS;
}

int main(void) {
  EXPECT(sterna_rpc_register("die", STERNA_RPC_THREAD, die, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  char byte = 0;
  if (sterna_rank() == 2) {
    EXPECT(sterna_message_send(0, 1, &byte, 1) == STERNA_SUCCESS);
  }
  if (sterna_rank() == 0) {
    /* Not before all have started: who still waits there hears of the loss in another way. */
    EXPECT(sterna_message_receive(2, 1, &byte, 1, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_rpc_call_for(1, "die", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) == STERNA_CLOSED);
    EXPECT(sterna_rpc_post(1, "die", NULL, 0) == STERNA_CLOSED);
    EXPECT(sterna_message_receive(1, 0, &byte, 1, NULL) == STERNA_CLOSED);
    puts("rank 0 heard of it");
    fflush(stdout);
  }
  sterna_thread_sleep(UINT64_C(20000000000));
  return 0;
}
