/* A node that dies while others call it and wait for it. The launcher ends the job, since a node
 * has failed; rank 0 says what it saw, if it has the time. With an argument all go on
 * (--on-loss go_on) and come to their end. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/completion.h"
#include "sterna/control.h"
#include "sterna/job_barrier.h"
#include "sterna/message.h"
#include "sterna/pack.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static sterna_status die(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  raise(SIGKILL);
  return STERNA_SUCCESS;
}

enum { kHanging = 4, kLong = 1000000 };
static char large[kLong];

/* A process that is killed is seen at once: by its launcher, and by who was connected to it. On a busy
 * machine that takes longer, but nothing like the silence of 30 s after which a host counts as gone. */
enum { kDetectionSeconds = 10 };

static double seconds(void) {
  struct timespec now;
  EXPECT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In the middle of a call: it has one of its pieces. */
static sterna_status take_and_die(void* context, sterna_rpc_request* request) {
  EXPECT(sterna_rpc_unpack(request, large, kLong, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  return die(context, request);
}

static void call_who_dies(void) {
  sterna_rpc_packing packing;
  EXPECT(sterna_rpc_begin(&packing, "take and die", NULL) == STERNA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_rpc_pack(&packing, large, kLong, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_call_packed(&packing, 1, NULL, 0, NULL) == STERNA_CLOSED);
}

static sterna_message_request masked, queued, called;
static sterna_message_queue queue = STERNA_MESSAGE_QUEUE_INIT;
static int is_called;

static void on_end(void* argument, sterna_message_request* request, sterna_status status,
                   const sterna_envelope* envelope) {
  (void)request, (void)envelope;
  EXPECT(status == STERNA_CLOSED);
  __atomic_store_n((int*)argument, 1, __ATOMIC_RELEASE);
}

/* What waits for the node when it dies. */
static void start_requests(void) {
  EXPECT(sterna_message_receive_init(&masked, 1, 0, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_mask(&masked, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive_init(&queued, 1, 7, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_queue(&queued, &queue) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive_init(&called, STERNA_ANY_RANK, 8, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&called, on_end, &is_called) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&masked) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&queued) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&called) == STERNA_SUCCESS);
}

/* Threads that wait by probes, of that node and of any. */
enum { kProbers = 4 };
static sterna_thread* probers[kProbers];

static void wait_by_probe(void* argument) {
  const size_t which = (size_t)argument;
  sterna_matched_message* message = NULL;
  sterna_status status = STERNA_SUCCESS;
  if (which == 0) {
    status = sterna_message_probe_for(1, 5, STERNA_WHOLE_TAG, STERNA_FOREVER, NULL);
  } else if (which == 1) {
    status = sterna_message_matched_probe_for(1, 5, 0xf, STERNA_FOREVER, &message, NULL);
  } else if (which == 2) {
    status = sterna_message_probe_for(STERNA_ANY_RANK, 6, 0xf, STERNA_FOREVER, NULL);
  } else {
    status = sterna_unpack_probe_for(NULL, 1, STERNA_ANY_TAG, STERNA_WHOLE_TAG, STERNA_FOREVER,
                                     NULL);
  }
  EXPECT(status == STERNA_CLOSED && message == NULL);
}

/* They are inside of the wait when this returns. */
static void start_probers(void) {
  for (size_t i = 0; i < kProbers; ++i) {
    EXPECT(sterna_thread_create(NULL, wait_by_probe, (void*)i, &probers[i]) == STERNA_SUCCESS);
  }
  for (size_t asleep = 0; asleep != kProbers;) {
    sterna_thread_info infos[32];
    size_t count = 0;
    EXPECT(sterna_thread_list(infos, 32, &count) == STERNA_SUCCESS && count <= 32);
    asleep = 0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < kProbers; ++j) {
        asleep += infos[i].thread == probers[j] && infos[i].state == STERNA_THREAD_BLOCKED;
      }
    }
  }
}

static void see_probers_end(void) {
  for (size_t i = 0; i < kProbers; ++i) {
    EXPECT(sterna_thread_join(probers[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_message_probe_for(1, 5, STERNA_WHOLE_TAG, STERNA_FOREVER, NULL) == STERNA_CLOSED);
  EXPECT(sterna_message_probe_for(1, 5, STERNA_WHOLE_TAG, 0, NULL) == STERNA_CLOSED);
  EXPECT(sterna_message_probe_for(STERNA_ANY_RANK, 6, STERNA_WHOLE_TAG, 1000000, NULL) ==
         STERNA_TIMED_OUT); /* The loss was before. */
}

static void see_them_end(void) {
  sterna_message_request* request = NULL;
  sterna_status ended = STERNA_SUCCESS;
  sterna_unpacking unpacking;
  EXPECT(sterna_message_wait(&masked, NULL) == STERNA_CLOSED);
  EXPECT(sterna_message_queue_take(&queue, STERNA_FOREVER, &request, &ended, NULL) ==
         STERNA_SUCCESS);
  EXPECT(request == &queued && ended == STERNA_CLOSED);
  while (__atomic_load_n(&is_called, __ATOMIC_ACQUIRE) == 0) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
  }
  EXPECT(sterna_unpack_begin(&unpacking, NULL, 1, 9, NULL) == STERNA_CLOSED);
}

/* Takes nothing of what it gets, and never answers. */
static sterna_status hang(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  sterna_thread_sleep(UINT64_C(20000000000));
  return STERNA_SUCCESS;
}

static sterna_rpc_call* hanging[kHanging];
static sterna_rpc_group* group;
static sterna_completion completion;
static sterna_completion_token token;

/* Calls of all kinds: short and long arguments, which nobody takes, to one node and to all. */
static void start_calls(void) {
  for (int i = 0; i < kHanging; ++i) {
    EXPECT(sterna_rpc_start(1, "hang", large, i % 2 == 0 ? 8 : kLong, &hanging[i]) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_multicast_start(NULL, 2, "hang or not", large, kLong, &group) ==
         STERNA_SUCCESS);
  EXPECT(sterna_completion_init(&completion, 1, &token) == STERNA_SUCCESS);
}

static void see_calls_end(void) {
  sterna_rpc_packing packing;
  sterna_rpc_result results[2];
  for (int i = 0; i < kHanging; ++i) {
    EXPECT(sterna_rpc_wait(hanging[i], NULL, 0, NULL) == STERNA_CLOSED);
  }
  EXPECT(sterna_rpc_multicast_wait(group, NULL, 0, results, STERNA_FOREVER) == STERNA_CLOSED);
  EXPECT(results[0].status == STERNA_SUCCESS && results[1].status == STERNA_CLOSED);
  EXPECT(sterna_completion_wait(&completion, NULL, 0, NULL, STERNA_FOREVER) == STERNA_CLOSED);
  EXPECT(sterna_completion_init(&completion, 1, &token) == STERNA_CLOSED);
  /* And new ones, long ones as well. */
  EXPECT(sterna_rpc_call_for(1, "hang", large, kLong, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_CLOSED);
  EXPECT(sterna_rpc_begin(&packing, "hang", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, large, kLong, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_post_packed(&packing, 1) == STERNA_CLOSED);
}

static sterna_status hang_or_not(void* context, sterna_rpc_request* request) {
  return sterna_node_index() == 0 ? STERNA_SUCCESS : hang(context, request);
}

static void register_unpacking(const char* name, sterna_rpc_service service) {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = STERNA_RPC_THREAD;
  options.unpacks = 1;
  EXPECT(sterna_rpc_register_with(name, &options, service, NULL) == STERNA_SUCCESS);
}

int main(int argc, char** argv) {
  (void)argv;
  register_unpacking("hang", hang);
  register_unpacking("hang or not", hang_or_not);
  register_unpacking("take and die", take_and_die);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  char byte = 0;
  if (sterna_rank() == 2) {
    EXPECT(sterna_message_send(0, 1, &byte, 1) == STERNA_SUCCESS);
  }
  if (sterna_rank() == 0) {
    /* Not before all have started: who still waits there hears of the loss in another way. */
    EXPECT(sterna_message_receive(2, 1, &byte, 1, NULL) == STERNA_SUCCESS);
    start_requests();
    start_probers();
    start_calls();
    const double start = seconds();
    call_who_dies();
    EXPECT(sterna_rpc_post(1, "hang", NULL, 0) == STERNA_CLOSED);
    EXPECT(sterna_message_receive(1, 0, &byte, 1, NULL) == STERNA_CLOSED);
    see_them_end();
    see_probers_end();
    see_calls_end();
    EXPECT(seconds() - start < kDetectionSeconds);
    puts("rank 0 heard of it");
    fflush(stdout);
    if (argc > 1) { /* The other one that lives does what it is asked for, as ever. */
      EXPECT(sterna_message_send(2, 2, &byte, 1) == STERNA_SUCCESS);
    }
  }
  if (argc > 1 && sterna_rank() == 2) {
    EXPECT(sterna_message_receive(0, 2, &byte, 1, NULL) == STERNA_SUCCESS);
  }
  if (argc > 1 && sterna_rank() != 1) {
    sterna_job_barrier all; /* Those who live hear that one is missing; nobody waits for ever. */
    EXPECT(sterna_job_barrier_init(&all, 1, 0) == STERNA_SUCCESS);
    EXPECT(sterna_job_barrier_wait(&all, NULL) == STERNA_CLOSED);
    EXPECT(sterna_job_barrier_wait(&all, NULL) == STERNA_CLOSED);
    return sterna_stop() == STERNA_SUCCESS ? 0 : 1;
  }
  sterna_thread_sleep(UINT64_C(20000000000));
  return 0;
}
