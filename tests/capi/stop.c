/* sterna_stop waits until all that goes on has ended, everywhere: chains of posts, threads that
 * post late or wait for a timer. What nobody will take holds nobody up. Alone and in jobs of
 * processes. */
#include "rpc.h"
#include "sterna/control.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kHops = 60, kLong = 50000, kAnnounced = 1 << 20 };

static uint32_t hops;     /* That were served here. */
static uint32_t ends;     /* Of services and threads that were late. */
static uint32_t node, node_count;

static void nap(void) {
  EXPECT(sterna_thread_sleep(1000000) == STERNA_SUCCESS);
}

/* --- A chain of posts, from node to node -------------------------------------------------------- */

static sterna_status hop(void* context, sterna_rpc_request* request) {
  (void)context;
  uint32_t left = 0;
  memcpy(&left, sterna_rpc_arguments(request, NULL), sizeof left);
  nap();
  if (left-- != 0) {
    EXPECT(sterna_rpc_post(next_node(), left % 2 == 0 ? "hop" : "quick hop", &left, sizeof left) ==
           STERNA_SUCCESS);
    nap();
  }
  __atomic_fetch_add(&hops, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static sterna_status quick_hop(void* context, sterna_rpc_request* request) {
  (void)context;
  uint32_t left = 0;
  memcpy(&left, sterna_rpc_arguments(request, NULL), sizeof left);
  if (left-- != 0) {
    EXPECT(sterna_rpc_post(next_node(), "hop", &left, sizeof left) == STERNA_SUCCESS);
  }
  __atomic_fetch_add(&hops, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static void expect_hops(void) {
  uint32_t mine = 0;
  for (uint32_t i = 0; i <= kHops; ++i) {
    mine += (i + 1) % node_count == node ? 1 : 0;
  }
  EXPECT(hops == mine);
}

/* --- A thread that posts, and one that calls, when all nodes are in the stop ---------------------- */

static sterna_status slow(void* context, sterna_rpc_request* request) {
  const int word = 7;
  (void)context;
  if (sterna_rpc_arguments(request, NULL) != NULL) {
    (void)sterna_rpc_reply_now(request, &word, sizeof word); /* REFUSED: of a post. */
  }
  EXPECT(sterna_thread_sleep(100000000) == STERNA_SUCCESS);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static void post_late(void* unused) {
  (void)unused;
  EXPECT(sterna_thread_sleep(60000000) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_post(next_node(), "slow", NULL, 0) == STERNA_SUCCESS);
}

static void call_late(void* unused) {
  int word = 0;
  (void)unused;
  EXPECT(sterna_thread_sleep(60000000) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_for(next_node(), "slow", &word, sizeof word, &word, sizeof word, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(word == 7);
}

/* --- A thread that waits for its timer ----------------------------------------------------------- */

static sterna_semaphore rung = STERNA_SEMAPHORE_INIT;
static sterna_timer timer, periodic, far_away;

static void ring(void* unused) {
  (void)unused;
  EXPECT(sterna_semaphore_release(&rung, 1) == STERNA_SUCCESS);
}

static void wait_for_timer(void* unused) {
  (void)unused;
  EXPECT(sterna_timer_set(&timer, 50000000) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&rung, STERNA_FOREVER) == STERNA_SUCCESS);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

static void nothing(void* unused) {
  (void)unused;
}

/* --- What nobody takes --------------------------------------------------------------------------- */

static unsigned char bytes[kAnnounced];
static sterna_rpc_call *forgotten, *forgotten_now, *forgotten_asking;

static sterna_status give_long(void* context, sterna_rpc_request* request) {
  (void)context;
  return sterna_rpc_reply(request, bytes, kLong);
}

/* The service waits until its reply is taken, and goes on when nobody is left who could. */
static sterna_status give_long_now(void* context, sterna_rpc_request* request) {
  int word = 5;
  (void)context;
  EXPECT(sterna_rpc_reply_now(request, bytes, sizeof bytes) == STERNA_CLOSED);
  expect_detail("nobody takes the reply");
  EXPECT(sterna_rpc_call_for(next_node(), "slow", &word, sizeof word, &word, sizeof word, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(word == 7);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

/* This one takes a reply itself, once it goes on: unless it is quick, that one was taken back, too. */
static sterna_status give_while_asking(void* context, sterna_rpc_request* request) {
  sterna_rpc_call* asked = NULL;
  unsigned char byte = 0;
  (void)context;
  EXPECT(sterna_rpc_start(next_node(), "give to who asks", NULL, 0, &asked) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_reply_now(request, bytes, sizeof bytes) == STERNA_CLOSED);
  const sterna_status status = sterna_rpc_wait(asked, &byte, 1, NULL);
  EXPECT(status == STERNA_CLOSED || (status == STERNA_TRUNCATED && byte == bytes[0]));
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static sterna_status give_to_who_asks(void* context, sterna_rpc_request* request) {
  (void)context;
  const sterna_status status = sterna_rpc_reply_now(request, bytes, sizeof bytes);
  EXPECT(status == STERNA_CLOSED || status == STERNA_SUCCESS);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

/* --- What is taken when all nodes are in the stop ------------------------------------------------- */

static sterna_status give_now(void* context, sterna_rpc_request* request) {
  (void)context;
  EXPECT(sterna_rpc_reply_now(request, bytes, sizeof bytes) == STERNA_SUCCESS);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

static void take_late(void* unused) {
  static unsigned char room[kAnnounced];
  sterna_rpc_call* asked = NULL;
  size_t count = 0;
  (void)unused;
  EXPECT(sterna_rpc_start(next_node(), "give now", NULL, 0, &asked) == STERNA_SUCCESS);
  EXPECT(sterna_thread_sleep(60000000) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_wait(asked, room, sizeof room, &count) == STERNA_SUCCESS);
  EXPECT(count == sizeof room && memcmp(room, bytes, sizeof room) == 0);
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

static void start(sterna_thread_function function) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_detached = 1;
  EXPECT(sterna_thread_create(&options, function, NULL, NULL) == STERNA_SUCCESS);
}

int main(void) {
  const uint32_t left = kHops;
  EXPECT(sterna_rpc_register("hop", STERNA_RPC_THREAD, hop, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("quick hop", STERNA_RPC_QUICK, quick_hop, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("slow", STERNA_RPC_THREAD, slow, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("give long", STERNA_RPC_QUICK, give_long, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("give long now", STERNA_RPC_THREAD, give_long_now, NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("give while asking", STERNA_RPC_THREAD, give_while_asking, NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("give to who asks", STERNA_RPC_THREAD, give_to_who_asks, NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_register("give now", STERNA_RPC_THREAD, give_now, NULL) == STERNA_SUCCESS);
  memset(bytes, 7, sizeof bytes);
  EXPECT(sterna_timer_init(&timer, ring, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&periodic, nothing, NULL, 5000000) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&far_away, nothing, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  node = sterna_node_index();
  node_count = sterna_node_count();
  if (node == 0) {
    EXPECT(sterna_rpc_post(next_node(), "hop", &left, sizeof left) == STERNA_SUCCESS);
  }
  start(post_late);
  start(call_late);
  start(wait_for_timer);
  start(take_late);
  EXPECT(sterna_timer_set(&periodic, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&far_away, UINT64_C(3600000000000)) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_start(next_node(), "give long", NULL, 0, &forgotten) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_start(next_node(), "give long now", NULL, 0, &forgotten_now) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_start(next_node(), "give while asking", NULL, 0, &forgotten_asking) ==
         STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  expect_hops();
  /* "slow" for a post and two calls, the timer, a reply given and taken late, and three others. */
  EXPECT(ends == 9);
  puts("No Errors");
  return 0;
}
