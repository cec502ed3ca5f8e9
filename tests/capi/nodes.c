/* Calls and messages between nodes, alone and in a job; settings. */
#include <string.h>

#include "expect.h"
#include "sterna/balance.h"
#include "sterna/control.h"
#include "sterna/memory.h"
#include "sterna/message.h"
#include "sterna/migrate.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"
#include "sterna/tune.h"

static int posted;

static sterna_status twice(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  int value = 0;
  EXPECT(context == &posted);
  const void* arguments = sterna_rpc_arguments(request, &bytes);
  if (bytes != sizeof value) {
    return STERNA_REFUSED;
  }
  memcpy(&value, arguments, bytes);
  value *= 2;
  return sterna_rpc_reply(request, &value, sizeof value);
}

static sterna_status slow_twice(void* context, sterna_rpc_request* request) {
  EXPECT(sterna_thread_self() != NULL);
  sterna_thread_sleep(2000000);
  return twice(context, request);
}

static int released;

/* Answers only after "release" has been called, so that a caller's time runs out before whatever
 * the machine does. */
static sterna_status held_twice(void* context, sterna_rpc_request* request) {
  while (__atomic_load_n(&released, __ATOMIC_ACQUIRE) == 0) {
    sterna_thread_sleep(100000);
  }
  return twice(context, request);
}

static sterna_status note(void* context, sterna_rpc_request* request) {
  (void)request;
  __atomic_fetch_add((int*)context, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static void test_rpc(void) {
  const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
  const int value = 21;
  int reply = 0;
  size_t bytes = 0;
  sterna_rpc_call* call = NULL;
  EXPECT(sterna_rpc_call_for(node, "twice", &value, sizeof value, &reply, sizeof reply, &bytes,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(reply == 42 && bytes == sizeof reply);
  reply = 0;
  EXPECT(sterna_rpc_call_for(node, "slow twice", &value, sizeof value, &reply, sizeof reply, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(reply == 42);
  EXPECT(sterna_rpc_call_for(node, "held twice", &value, sizeof value, &reply, sizeof reply, NULL,
                             1000) == STERNA_TIMED_OUT);
  EXPECT(sterna_rpc_post(node, "release", NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_for(node, "twice", &value, 1, &reply, sizeof reply, NULL,
                             STERNA_FOREVER) == STERNA_REFUSED);
  EXPECT(sterna_rpc_call_for(node, "twice", &value, sizeof value, &reply, 1, &bytes,
                             STERNA_FOREVER) == STERNA_TRUNCATED);
  EXPECT(bytes == sizeof reply);
  EXPECT(sterna_rpc_call_for(node, "unknown", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_NOT_FOUND);
  EXPECT(sterna_rpc_call_for(sterna_node_count(), "twice", NULL, 0, NULL, 0, NULL, 0) ==
         STERNA_INVALID_ARGUMENT);
  reply = 0;
  EXPECT(sterna_rpc_start(node, "slow twice", &value, sizeof value, &call) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_wait(call, &reply, sizeof reply, NULL) == STERNA_SUCCESS);
  EXPECT(reply == 42);
  for (int i = 0; i < 10; ++i) {
    EXPECT(sterna_rpc_post(node, "note", NULL, 0) == STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_register("late", STERNA_RPC_QUICK, note, NULL) == STERNA_BUSY);
}

static void send_large(void* data) {
  const uint32_t to = (sterna_rank() + 1) % sterna_rank_count();
  EXPECT(sterna_message_send(to, 7, data, 1 << 20) == STERNA_SUCCESS);
}

static void test_loads(void) {
  sterna_node_load load = {sizeof load, 0, 0, 0};
  sterna_load_call* call = NULL;
  for (uint32_t node = 0; node < sterna_node_count(); ++node) {
    EXPECT(sterna_node_load_query(node, &load) == STERNA_SUCCESS);
    EXPECT(load.ranks == 1 && load.workers > 0 && load.processor_ns > 0);
  }
  EXPECT(sterna_node_load_start(0, &call) == STERNA_SUCCESS);
  while (!sterna_node_load_is_done(call)) {
    sterna_thread_sleep(1000);
  }
  EXPECT(sterna_node_load_wait(call, &load) == STERNA_SUCCESS);
  EXPECT(sterna_node_load_start(0, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_node_load_start(sterna_node_count(), &call) == STERNA_INVALID_ARGUMENT);
}

static void test_messages(void) {
  const uint32_t from = (sterna_rank() + sterna_rank_count() - 1) % sterna_rank_count();
  const uint32_t to = (sterna_rank() + 1) % sterna_rank_count();
  unsigned char* out = malloc(1 << 20);
  unsigned char* in = calloc(1 << 20, 1);
  sterna_thread* sender = NULL;
  sterna_envelope envelope = {0, 0, 0};
  int found = 0;
  memset(out, (int)sterna_rank() + 1, 1 << 20);
  /* A user thread sends while this kernel thread receives. */
  EXPECT(sterna_thread_create(NULL, send_large, out, &sender) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(STERNA_ANY_RANK, 7, in, 1 << 20, &envelope) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(sender) == STERNA_SUCCESS);
  EXPECT(envelope.source == from && envelope.tag == 7 && envelope.bytes == 1 << 20);
  EXPECT(in[0] == from + 1 && in[(1 << 20) - 1] == from + 1);
  EXPECT(sterna_message_send(to, 8, "four", 4) == STERNA_SUCCESS);
  while (!found) {
    EXPECT(sterna_message_probe(from, STERNA_ANY_TAG, &found, &envelope) == STERNA_SUCCESS);
  }
  EXPECT(envelope.tag == 8 && envelope.bytes == 4);
  EXPECT(sterna_message_receive(from, 8, in, 2, &envelope) == STERNA_TRUNCATED);
  EXPECT(memcmp(in, "fo", 2) == 0 && in[2] == from + 1);
  EXPECT(sterna_message_send(sterna_rank_count(), 0, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send(to, -2, NULL, 0) == STERNA_INVALID_ARGUMENT);
  free(in);
  free(out);
}

/* Node 0 ends with its scheduling frozen, while the others wait for what a thread does there. */
static void call_frozen(void) {
  const int value = 21;
  int reply = 0;
  if (sterna_node_index() == 0) {
    EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS);
    for (uint32_t rank = 1; rank < sterna_rank_count(); ++rank) {
      EXPECT(sterna_message_send(rank, 9, NULL, 0) == STERNA_SUCCESS);
    }
    return;
  }
  EXPECT(sterna_message_receive(0, 9, NULL, 0, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_for(0, "slow twice", &value, sizeof value, &reply, sizeof reply, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(reply == 42);
}

static void find_log(void* found, const char* name, const char* value, const char* source) {
  EXPECT(value != NULL && source != NULL);
  *(int*)found |= strcmp(name, "log") == 0;
}

int main(void) {
  char value[16];
  int found = 0;
  sterna_node_load load = {sizeof load, 0, 0, 0};
  EXPECT(sterna_node_load_query(0, &load) == STERNA_NOT_STARTED);
  EXPECT(sterna_setting_set("no_such", "1") == STERNA_NOT_FOUND);
  EXPECT(sterna_setting_set("spin", "fast") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_setting_set("spin", "5us") == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("twice", STERNA_RPC_QUICK, twice, &posted) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("twice", STERNA_RPC_QUICK, twice, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_rpc_register("slow twice", STERNA_RPC_THREAD, slow_twice, &posted) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("held twice", STERNA_RPC_THREAD, held_twice, &posted) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("release", STERNA_RPC_QUICK, note, &released) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("note", STERNA_RPC_QUICK, note, &posted) == STERNA_SUCCESS);
  EXPECT(sterna_message_send(0, 0, NULL, 0) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  EXPECT(sterna_setting_get("spin", value, sizeof value) == STERNA_SUCCESS);
  EXPECT(strcmp(value, "5us") == 0);
  EXPECT(sterna_setting_set("spin", "6us") == STERNA_BUSY);
  EXPECT(sterna_setting_list(find_log, &found) == STERNA_SUCCESS && found);
  test_rpc();
  test_loads();
  test_messages();
  EXPECT(sterna_migrate_to(0) == STERNA_UNSUPPORTED);
  EXPECT(sterna_balance_point() == STERNA_SUCCESS);
  void* memory = sterna_iso_alloc(100);
  EXPECT(memory != NULL && !sterna_is_iso(memory));
  sterna_iso_free(memory);
  call_frozen();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(posted == 10); /* The end waits for what was posted. */
  puts("No Errors");
  return 0;
}
