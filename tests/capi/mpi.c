/* MPI and the C API in one program, in the orders that their starts and ends allow. The argument:
 * i = MPI_Init, f = MPI_Finalize, s = sterna_start, t = sterna_stop, u = use of what is open. */
#include <mpi.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static int has_mpi, has_sterna;

static sterna_status who(void* context, sterna_rpc_request* request) {
  (void)context;
  const uint32_t node = sterna_node_index();
  return sterna_rpc_reply(request, &node, sizeof node);
}

static void add_one(void* argument) { ++*(int*)argument; }

static void use(void) {
  if (has_mpi) {
    int rank = -1, sum = 0, one = 1;
    EXPECT(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
    EXPECT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT((uint32_t)rank == sterna_rank() && (uint32_t)sum == sterna_rank_count());
  }
  if (has_sterna) {
    const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
    uint32_t answer = node + 1;
    sterna_thread* thread = NULL;
    int count = 0;
    EXPECT(sterna_rpc_call_for(node, "who", NULL, 0, &answer, sizeof answer, NULL,
                               STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(answer == node);
    EXPECT(sterna_thread_create(NULL, add_one, &count, &thread) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS && count == 1);
  }
  if (has_mpi || has_sterna) {
    const uint32_t to = (sterna_rank() + 1) % sterna_rank_count();
    EXPECT(sterna_message_send(to, 1, &to, sizeof to) == STERNA_SUCCESS);
    uint32_t mine = to;
    EXPECT(sterna_message_receive(STERNA_ANY_RANK, 1, &mine, sizeof mine, NULL) == STERNA_SUCCESS);
    EXPECT(mine == sterna_rank());
  }
}

static void step(char which) {
  switch (which) {
    case 'i':
      EXPECT(MPI_Init(NULL, NULL) == MPI_SUCCESS);
      has_mpi = 1;
      break;
    case 'f':
      EXPECT(MPI_Finalize() == MPI_SUCCESS);
      has_mpi = 0;
      break;
    case 's':
      EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
      has_sterna = 1;
      break;
    case 't':
      EXPECT(sterna_stop() == STERNA_SUCCESS);
      EXPECT(sterna_start(NULL) == STERNA_UNSUPPORTED); /* Once in a process. */
      has_sterna = 0;
      break;
    default:
      use();
  }
}

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  EXPECT(sterna_rpc_register("who", STERNA_RPC_THREAD, who, NULL) == STERNA_SUCCESS);
  for (const char* at = argv[1]; *at != '\0'; ++at) {
    step(*at);
  }
  puts("No Errors");
  return 0;
}
