/* Services in the poll and in threads as they were asked for, in a bubble; what goes wrong reaches
 * the caller with its words. Alone and in jobs of processes. */
#include "rpc.h"
#include "sterna/bubble.h"
#include "sterna/completion.h"
#include "sterna/control.h"
#include "sterna/message.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kLong = 300000 };

/* --- Threads of services -----------------------------------------------------------------------
 */

static int stays_small; /* What the stack of a service held. */

static sterna_status tell_thread(void* context, sterna_rpc_request* request) {
  char name[32] = "";
  uint32_t priority = 99;
  size_t wanted = 0;
  (void)context;
  const size_t* const stack = sterna_rpc_arguments(request, &wanted);
  if (wanted == sizeof *stack) {
    volatile char room[*stack]; /* That much stack is there. */
    room[0] = room[*stack - 1] = 1;
    stays_small = room[0];
  }
  EXPECT(sterna_thread_self() != NULL);
  EXPECT(sterna_thread_name(sterna_thread_self(), name, sizeof name) == STERNA_SUCCESS);
  EXPECT(sterna_thread_priority(sterna_thread_self(), &priority) == STERNA_SUCCESS);
  char reply[64];
  const int length = snprintf(reply, sizeof reply, "%s %u", name, priority);
  return sterna_rpc_reply(request, reply, (size_t)length + 1);
}

static void expect_thread(const char* service, const sterna_rpc_options* options, size_t stack,
                          const char* told) {
  sterna_rpc_packing packing;
  char reply[64] = "";
  EXPECT(sterna_rpc_begin(&packing, service, options) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, &stack, sizeof stack, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, next_node(), reply, sizeof reply, NULL) ==
         STERNA_SUCCESS);
  if (strcmp(reply, told) != 0) {
    fprintf(stderr, "not true: \"%s\" is \"%s\"\n", reply, told);
    exit(1);
  }
}

static void test_threads(void) {
  sterna_rpc_options options = STERNA_RPC_OPTIONS_DEFAULT;
  expect_thread("tell thread", NULL, 200 << 10, "tell thread 11");
  expect_thread("tell prepared", NULL, 900 << 10, "prepared 21");
  options.priority = STERNA_PRIORITY_BATCH;
  options.stack_bytes = 2 << 20;
  expect_thread("tell thread", &options, 1900 << 10, "tell thread 2");
  expect_thread("tell prepared", &options, 1900 << 10, "prepared 2");
}

/* In a bubble: its threads are waited for by who joins it. */
static sterna_bubble* bubble;
static int in_bubble;

static sterna_status join_bubble(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  __atomic_fetch_add(&in_bubble, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static sterna_status end_bubble(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  return sterna_rpc_reply(request, &in_bubble, sizeof in_bubble);
}

static void test_bubble(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_rpc_call* calls[3] = {NULL, NULL, NULL};
  int count = 0;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options.bubble = bubble;
  EXPECT(sterna_rpc_set_thread("join bubble", &options) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_set_thread("no such", &options) == STERNA_NOT_FOUND);
  for (uint32_t rank = 0; rank < sterna_rank_count(); ++rank) { /* All have set it. */
    EXPECT(sterna_rpc_call_for(rank, "note", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
           STERNA_SUCCESS);
  }
  char byte = 0;
  for (uint32_t rank = 0; rank < sterna_rank_count(); ++rank) {
    EXPECT(sterna_message_send(rank, 20, &byte, 1) == STERNA_SUCCESS);
  }
  for (uint32_t rank = 0; rank < sterna_rank_count(); ++rank) {
    EXPECT(sterna_message_receive(rank, 20, &byte, 1, NULL) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_rpc_start(next_node(), "join bubble", NULL, 0, &calls[i]) == STERNA_SUCCESS);
  }
  /* They start with the bubble, not before. */
  EXPECT(sterna_rpc_call_for(next_node(), "end bubble", NULL, 0, &count, sizeof count, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(count == 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_rpc_wait(calls[i], NULL, 0, NULL) == STERNA_SUCCESS);
  }
}

/* --- What goes wrong ---------------------------------------------------------------------------
 */

static sterna_mutex taken = STERNA_MUTEX_INIT;

/* Quick, and tries everything that waits. */
static sterna_status misbehave(void* context, sterna_rpc_request* request) {
  static sterna_semaphore empty;
  char byte = 0;
  sterna_rpc_packing packing;
  sterna_completion completion;
  sterna_completion_token token;
  (void)context;
  EXPECT(sterna_rpc_call_for(sterna_node_index(), "echo", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_DEADLOCK);
  expect_detail("STERNA_RPC_THREAD");
  EXPECT(sterna_rpc_begin(&packing, "echo", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, 0, NULL, 0, NULL) == STERNA_DEADLOCK);
  EXPECT(sterna_message_receive(STERNA_ANY_RANK, 99, &byte, 1, NULL) == STERNA_DEADLOCK);
  EXPECT(sterna_rpc_reply_now(request, &byte, 1) == STERNA_DEADLOCK);
  EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
  EXPECT(sterna_completion_wait(&completion, NULL, 0, NULL, STERNA_FOREVER) == STERNA_DEADLOCK);
  EXPECT(sterna_completion_destroy(&completion) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&taken) == STERNA_DEADLOCK);
  EXPECT(sterna_semaphore_acquire(&empty, STERNA_FOREVER) == STERNA_DEADLOCK);
  EXPECT(sterna_thread_sleep(UINT64_C(3600000000000)) == STERNA_DEADLOCK);
  return sterna_rpc_fail(request, STERNA_BUSY, "nothing of that is allowed");
}

static sterna_status reply_early(void* context, sterna_rpc_request* request) {
  unsigned char* const data = filled(kLong, 9);
  (void)context;
  EXPECT(sterna_rpc_reply_now(request, data, kLong) == STERNA_SUCCESS);
  memset(data, 0, kLong); /* It is ours again. */
  EXPECT(sterna_rpc_reply_now(request, data, kLong) == STERNA_REFUSED);
  free(data);
  return STERNA_BUSY; /* Nobody hears of it. */
}

static int may_go;

static sterna_status held(void* context, sterna_rpc_request* request) {
  (void)context;
  while (__atomic_load_n(&may_go, __ATOMIC_ACQUIRE) == 0) {
    sterna_thread_sleep(100000);
  }
  return echo(NULL, request);
}

static sterna_status let_go(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
  return STERNA_SUCCESS;
}

static void test_errors(void) {
  unsigned char* const data = filled(kLong, 9);
  unsigned char* const in = calloc(kLong, 1);
  size_t bytes = 0;
  EXPECT(sterna_rpc_call_for(next_node(), "unknown", data, kLong, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_NOT_FOUND);
  expect_detail("no such service");
  EXPECT(sterna_mutex_lock(&taken) == STERNA_SUCCESS);
  for (uint32_t rank = 0; rank < sterna_rank_count(); ++rank) {
    EXPECT(sterna_rpc_call_for(rank, "note", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_call_for(sterna_node_index(), "misbehave", NULL, 0, NULL, 0, NULL,
                             STERNA_FOREVER) == STERNA_BUSY);
  expect_detail("nothing of that is allowed");
  EXPECT(sterna_mutex_unlock(&taken) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_for(next_node(), "reply early", NULL, 0, in, kLong, &bytes,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(bytes == kLong && is_filled(in, kLong, 9));
  /* The time runs out, whatever the machine does; the late reply, a long one, changes nothing. */
  EXPECT(sterna_rpc_call_for(next_node(), "held", data, kLong, in, kLong, NULL, 1000) ==
         STERNA_TIMED_OUT);
  memset(data, 0, kLong);
  EXPECT(sterna_rpc_post(next_node(), "let go", NULL, 0) == STERNA_SUCCESS);
  EXPECT(is_filled(in, kLong, 9));
  EXPECT(sterna_rpc_call_for(sterna_node_count(), "echo", NULL, 0, NULL, 0, NULL, 0) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rpc_register("late", STERNA_RPC_QUICK, echo, NULL) == STERNA_BUSY);
  free(in);
  free(data);
}

static sterna_status note(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  return STERNA_SUCCESS;
}

int main(void) {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = STERNA_RPC_THREAD;
  options.thread.name = "prepared";
  options.thread.priority = STERNA_PRIORITY_REAL_TIME + 1;
  options.thread.stack_bytes = 1 << 20;
  EXPECT(sterna_rpc_register_with("tell prepared", &options, tell_thread, NULL) == STERNA_SUCCESS);
  register_as("echo", STERNA_RPC_QUICK, 0, echo);
  register_as("tell thread", STERNA_RPC_THREAD, 0, tell_thread);
  register_as("join bubble", STERNA_RPC_THREAD, 0, join_bubble);
  register_as("end bubble", STERNA_RPC_THREAD, 0, end_bubble);
  register_as("misbehave", STERNA_RPC_QUICK, 0, misbehave);
  register_as("reply early", STERNA_RPC_THREAD, 0, reply_early);
  register_as("held", STERNA_RPC_THREAD, 0, held);
  register_as("let go", STERNA_RPC_QUICK, 0, let_go);
  register_as("note", STERNA_RPC_QUICK, 0, note);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_threads();
  test_bubble();
  test_errors();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
