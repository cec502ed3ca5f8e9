/* A request with a callback can be described as soon as there are messages, here from MPI_Init on,
 * and is started where there are workers, who make the call: between sterna_start and sterna_stop. */
#include <mpi.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/sterna.h"

static sterna_message_request in;
static char byte;
static int is_called; /* Atomic. */

static void on_end(void* argument, sterna_message_request* request, sterna_status status,
                   const sterna_envelope* envelope) {
  EXPECT(request == &in && status == STERNA_SUCCESS && envelope->bytes == 1);
  __atomic_store_n((int*)argument, 1, __ATOMIC_RELEASE);
}

int main(void) {
  int provided = 0;
  EXPECT(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
  EXPECT(sterna_message_receive_init(&in, sterna_rank(), 1, &byte, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&in, on_end, &is_called) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&in) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&in) == STERNA_SUCCESS);
  EXPECT(sterna_message_send(sterna_rank(), 1, "x", 1) == STERNA_SUCCESS);
  while (__atomic_load_n(&is_called, __ATOMIC_ACQUIRE) == 0) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
  }
  EXPECT(byte == 'x');
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&in) == STERNA_NOT_STARTED);
  EXPECT(sterna_message_set_callback(&in, NULL, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&in) == STERNA_SUCCESS); /* To be waited for. */
  EXPECT(sterna_message_send(sterna_rank(), 1, "y", 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, NULL) == STERNA_SUCCESS && byte == 'y');
  EXPECT(MPI_Finalize() == MPI_SUCCESS);
  puts("No Errors");
  return 0;
}
