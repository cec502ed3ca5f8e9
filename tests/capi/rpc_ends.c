/* Threads of services that end inside their service, and bubbles that end before the calls do:
 * callers hear of it, and nothing is kept. Alone and in jobs of processes. */
#include <unistd.h>

#include "../resident.h"
#include "rpc.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/thread.h"

enum { kLong = 100000, kCalls = 3000 };

/* --- Threads that end inside ----------------------------------------------------------------- */

static sterna_thread* sleeper;

static sterna_status leave(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  sterna_thread_exit();
  return STERNA_SUCCESS;
}

static sterna_status leave_with_piece(void* context, sterna_rpc_request* request) {
  unsigned char piece[kLong];
  (void)context;
  EXPECT(sterna_rpc_unpack(request, piece, sizeof piece, STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
  sterna_thread_exit(); /* Which waits for the piece: it would come to memory of another one. */
  return STERNA_SUCCESS;
}

static sterna_status sleep_long(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  __atomic_store_n(&sleeper, sterna_thread_self(), __ATOMIC_RELEASE);
  (void)sterna_thread_sleep(UINT64_C(3600000000000));
  return STERNA_SUCCESS;
}

static sterna_status cancel_sleeper(void* context, sterna_rpc_request* request) {
  sterna_thread* found = NULL;
  (void)context, (void)request;
  while ((found = __atomic_exchange_n(&sleeper, NULL, __ATOMIC_ACQ_REL)) == NULL) {
    EXPECT(sterna_thread_sleep(1000000) == STERNA_SUCCESS);
  }
  return sterna_thread_cancel(found);
}

static sterna_status call(const char* service) {
  return sterna_rpc_call_for(next_node(), service, NULL, 0, NULL, 0, NULL, STERNA_FOREVER);
}

static void expect_ended(sterna_status status) {
  EXPECT(status == STERNA_REFUSED);
  expect_detail("has ended inside it");
}

static void pack_long(sterna_rpc_packing* packing, const char* service, const void* data) {
  EXPECT(sterna_rpc_begin(packing, service, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(packing, data, kLong, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
}

static void test_ends(void) {
  sterna_rpc_packing packing;
  sterna_rpc_call* sleeping = NULL;
  unsigned char* const data = filled(kLong, 3);
  expect_ended(call("leave"));
  EXPECT(sterna_rpc_start(next_node(), "sleep long", NULL, 0, &sleeping) == STERNA_SUCCESS);
  EXPECT(call("cancel sleeper") == STERNA_SUCCESS);
  expect_ended(sterna_rpc_wait(sleeping, NULL, 0, NULL));
  pack_long(&packing, "leave with piece", data);
  expect_ended(sterna_rpc_call_packed(&packing, next_node(), NULL, 0, NULL));
  pack_long(&packing, "leave without piece", data); /* And their sender may go on. */
  expect_ended(sterna_rpc_call_packed(&packing, next_node(), NULL, 0, NULL));
  pack_long(&packing, "leave without piece", data);
  EXPECT(sterna_rpc_post_packed(&packing, next_node()) == STERNA_SUCCESS);
  free(data);
}

/* --- Threads in a bubble --------------------------------------------------------------------- */

static int may_end;

static void keep(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE)) {
    EXPECT(sterna_thread_sleep(1000000) == STERNA_SUCCESS);
  }
}

static sterna_status nothing(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  return STERNA_SUCCESS;
}

static void call_here(int count) {
  for (int i = 0; i < count; ++i) {
    EXPECT(sterna_rpc_call_for(sterna_node_index(), "in bubble", NULL, 0, NULL, 0, NULL,
                               STERNA_FOREVER) == STERNA_SUCCESS);
  }
}

static void test_bubble(void) {
  sterna_bubble* bubble = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, keep, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  options.bubble = bubble;
  EXPECT(sterna_rpc_set_thread("in bubble", &options) == STERNA_SUCCESS);
  call_here(kCalls / 10);
  const long before = resident_bytes();
  call_here(kCalls);
#ifndef STERNA_SANITIZED
  EXPECT(resident_bytes() - before < 2048L * kCalls); /* What was theirs goes with them. */
#else
  (void)before;
#endif
  __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  call_here(3); /* Without it. */
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options.bubble = bubble;
  EXPECT(sterna_rpc_set_thread("in bubble", &options) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  call_here(3);
}

static void add(const char* name, uint32_t unpacks, sterna_rpc_service service) {
  sterna_rpc_service_options options = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  options.kind = STERNA_RPC_THREAD;
  options.unpacks = unpacks;
  options.thread.is_cancellable = 1;
  EXPECT(sterna_rpc_register_with(name, &options, service, NULL) == STERNA_SUCCESS);
}

static void test_words(void) {
  sterna_rpc_packing packing;
  sterna_rpc_options options = STERNA_RPC_OPTIONS_DEFAULT;
  options.priority = STERNA_PRIORITY_MAX + 1;
  EXPECT(sterna_rpc_begin(&packing, "leave", &options) == STERNA_INVALID_ARGUMENT);
  expect_detail("priority above 24");
}

int main(void) {
  add("leave", 0, leave);
  add("leave with piece", 1, leave_with_piece);
  add("leave without piece", 1, leave);
  add("sleep long", 0, sleep_long);
  add("cancel sleeper", 0, cancel_sleeper);
  add("in bubble", 0, nothing);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_ends();
  test_bubble();
  test_words();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
