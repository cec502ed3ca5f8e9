/* What the poll runs, a quick service or the callback of a message, may not wait nor switch: every
 * call that does is refused there with its reason, and none of them holds the node up. Alone and in
 * jobs of processes. */
#include <errno.h>
#include <unistd.h>

#include "rpc.h"
#include "sterna/balance.h"
#include "sterna/bubble.h"
#include "sterna/completion.h"
#include "sterna/control.h"
#include "sterna/io.h"
#include "sterna/loop.h"
#include "sterna/message.h"
#include "sterna/place.h"
#include "sterna/seed.h"
#include "sterna/sync.h"
#include "sterna/tasklet.h"
#include "sterna/thread.h"

static sterna_mutex mutex = STERNA_MUTEX_INIT; /* Taken. */
static sterna_mutex recursive;                 /* Taken. */
static sterna_spin_lock spin = STERNA_SPIN_LOCK_INIT;
static sterna_rwlock rwlock = STERNA_RWLOCK_INIT;
static sterna_barrier barrier;
static sterna_bubble* bubble; /* Runs. */
static sterna_tasklet tasklet;
static sterna_timer timer;
static sterna_thread* frozen;
static int ends[2]; /* Of an empty pipe. */

static void nothing(void* argument) {
  (void)argument;
}

static void nothing_of(uint64_t begin, uint64_t end, void* argument) {
  (void)begin, (void)end, (void)argument;
}

static void expect_refused(sterna_status status, const char* call) {
  if (status != STERNA_DEADLOCK) {
    fprintf(stderr, "not true: %s is refused in the poll\n", call);
    exit(1);
  }
  expect_detail(call);
  expect_detail("STERNA_RPC_THREAD");
}
#define REFUSED(name, arguments) expect_refused(name arguments, #name)

static void try_threads(void) {
  sterna_thread* threads[1] = {frozen};
  REFUSED(sterna_thread_yield, ());
  REFUSED(sterna_thread_sleep, (UINT64_C(3600000000000)));
  REFUSED(sterna_thread_yield_to, (frozen));
  REFUSED(sterna_thread_join, (frozen));
  REFUSED(sterna_thread_exit, ());
  REFUSED(sterna_thread_stay_at, ("machine:0"));
  REFUSED(sterna_thread_freeze, (threads, 1, STERNA_FOREVER));
  REFUSED(sterna_scheduling_freeze, (STERNA_FOREVER));
  REFUSED(sterna_blocking_begin, ());
  REFUSED(sterna_bubble_join, (bubble));
  REFUSED(sterna_bubble_barrier, (bubble, NULL));
  if (sterna_thread_self() != NULL) {
    REFUSED(sterna_thread_park, (STERNA_FOREVER));
  }
}

static void try_objects(void) {
  static sterna_once once = STERNA_ONCE_INIT;
  sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
  sterna_futex futex = STERNA_FUTEX_INIT;
  sterna_mutex own;
  const uint64_t word = 0;
  REFUSED(sterna_mutex_lock_for, (&mutex, STERNA_FOREVER));
  REFUSED(sterna_spin_lock_take, (&spin));
  REFUSED(sterna_rwlock_read, (&rwlock, STERNA_FOREVER));
  REFUSED(sterna_rwlock_write, (&rwlock, STERNA_FOREVER));
  REFUSED(sterna_barrier_wait, (&barrier, NULL));
  REFUSED(sterna_semaphore_acquire, (&semaphore, STERNA_FOREVER));
  REFUSED(sterna_once_call, (&once, nothing, NULL));
  REFUSED(sterna_futex_wait, (&futex, &word, UINT64_MAX, 0, STERNA_FOREVER));
  REFUSED(sterna_timer_set, (&timer, 1));
  REFUSED(sterna_timer_cancel, (&timer));
  REFUSED(sterna_tasklet_disable, (&tasklet));
  REFUSED(sterna_tasklet_cancel, (&tasklet));
  /* What does not wait is done. */
  EXPECT(sterna_semaphore_release(&semaphore, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_try_acquire(&semaphore) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_try_lock(&mutex) == STERNA_BUSY);
  /* Whoever polls may hold it: a quick service is somebody else. */
  EXPECT(sterna_mutex_try_lock(&recursive) == STERNA_BUSY);
  EXPECT(sterna_mutex_unlock(&recursive) == STERNA_NOT_OWNER);
  EXPECT(sterna_rwlock_end_write(&rwlock) == STERNA_NOT_OWNER);
  EXPECT(sterna_mutex_init(&own, STERNA_MUTEX_RECURSIVE) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_try_lock(&own) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_try_lock(&own) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&own) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&own) == STERNA_SUCCESS);
  sterna_semaphore* named = NULL;
  EXPECT(sterna_semaphore_open("in poll", STERNA_SEMAPHORE_CREATE, 1, &named) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(named) == STERNA_SUCCESS);
  EXPECT(sterna_free_at(sterna_malloc_at("machine:0", 100)) == STERNA_SUCCESS);
  EXPECT(sterna_futex_wake(&futex, 1, NULL) == STERNA_SUCCESS);
}

static void try_work(void) {
  sterna_seed seed;
  sterna_node_load load = {.size_bytes = sizeof load};
  char byte = 0;
  REFUSED(sterna_seed_plant_with, (&seed, NULL, nothing, NULL));
  REFUSED(sterna_loop_run, (0, 10, NULL, nothing_of, NULL));
  REFUSED(sterna_node_load_query, (sterna_node_index(), &load));
  EXPECT(sterna_read(ends[0], &byte, 1) == -1 && *sterna_errno() == EDEADLK);
  expect_detail("io.h");
  EXPECT(sterna_fsync(ends[1]) == -1 && *sterna_errno() == EDEADLK);
  const struct timespec hour = {3600, 0};
  EXPECT(sterna_nanosleep(&hour) == -1 && *sterna_errno() == EDEADLK);
  struct pollfd readable = {ends[0], POLLIN, 0};
  EXPECT(sterna_poll(&readable, 1, -1) == -1 && *sterna_errno() == EDEADLK);
  EXPECT(sterna_poll(&readable, 1, 0) == 0);
}

/* --- What has ended, but whose bytes are still to come ---------------------------------------- */

enum { kLong = 200000 };

static sterna_rpc_call* long_call;
static sterna_rpc_call* packed_call;
static sterna_completion completion;
static unsigned char room[kLong];

static sterna_status wait_too_early(void* context, sterna_rpc_request* request) {
  sterna_rpc_packing packing;
  const int word = 5;
  (void)context, (void)request;
  EXPECT(sterna_rpc_is_done(long_call) && sterna_completion_is_done(&completion));
  REFUSED(sterna_rpc_wait, (long_call, room, sizeof room, NULL));
  EXPECT(sterna_completion_wait(&completion, room, sizeof room, NULL, STERNA_FOREVER) ==
         STERNA_DEADLOCK);
  /* What only starts is done, as sterna_rpc_start. */
  EXPECT(sterna_rpc_begin(&packing, "echo", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, &word, sizeof word, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_start_packed(&packing, next_node(), &packed_call) == STERNA_SUCCESS);
  return STERNA_SUCCESS;
}

static sterna_status signal_long(void* context, sterna_rpc_request* request) {
  sterna_completion_token token;
  unsigned char* const data = filled(kLong, 2);
  (void)context;
  memcpy(&token, sterna_rpc_arguments(request, NULL), sizeof token);
  EXPECT(sterna_completion_signal(&token, data, kLong) == STERNA_SUCCESS);
  free(data);
  return STERNA_SUCCESS;
}

static void test_long(void) {
  sterna_completion_token token;
  size_t bytes = 0;
  int word = 0;
  unsigned char* const out = filled(kLong, 1);
  EXPECT(sterna_rpc_start(next_node(), "echo", out, kLong, &long_call) == STERNA_SUCCESS);
  EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_post(next_node(), "signal long", &token, sizeof token) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_await(long_call, NULL, STERNA_FOREVER) == STERNA_SUCCESS);
  while (!sterna_completion_is_done(&completion)) {
    EXPECT(sterna_thread_yield() == STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_call_for(sterna_node_index(), "wait too early", NULL, 0, NULL, 0, NULL,
                             STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_wait(long_call, room, sizeof room, &bytes) == STERNA_SUCCESS);
  EXPECT(bytes == kLong && is_filled(room, kLong, 1));
  EXPECT(sterna_completion_wait(&completion, room, sizeof room, &bytes, STERNA_FOREVER) ==
         STERNA_SUCCESS);
  EXPECT(bytes == kLong && is_filled(room, kLong, 2));
  EXPECT(sterna_rpc_wait(packed_call, &word, sizeof word, NULL) == STERNA_SUCCESS && word == 5);
  free(out);
}

static void try_all(void) {
  try_threads();
  try_objects();
  try_work();
}

static sterna_status misbehave(void* context, sterna_rpc_request* request) {
  (void)context;
  try_all();
  return sterna_rpc_fail(request, STERNA_BUSY, "nothing of that is allowed");
}

static int was_called;

static void misbehave_at_end(void* argument, sterna_message_request* request, sterna_status status,
                             const sterna_envelope* envelope) {
  (void)argument, (void)request, (void)envelope;
  EXPECT(status == STERNA_CANCELLED);
  try_all();
  __atomic_store_n(&was_called, 1, __ATOMIC_RELEASE);
}

static void in_callback(void) {
  sterna_message_request request;
  EXPECT(sterna_message_receive_init(&request, 0, 7, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&request, misbehave_at_end, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&request) == STERNA_SUCCESS);
  while (!__atomic_load_n(&was_called, __ATOMIC_ACQUIRE)) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
    EXPECT(sterna_thread_yield() == STERNA_SUCCESS); /* Here it may. */
  }
}

static void set_up(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_frozen = 1;
  EXPECT(sterna_thread_create(&options, nothing, NULL, &frozen) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_barrier_init(&barrier, 2) == STERNA_SUCCESS);
  EXPECT(sterna_tasklet_init(&tasklet, nothing, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&timer, nothing, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_init(&recursive, STERNA_MUTEX_RECURSIVE) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&recursive) == STERNA_SUCCESS);
  EXPECT(sterna_spin_lock_take(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_rwlock_write(&rwlock, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(pipe(ends) == 0);
}

static void take_down(void) {
  EXPECT(sterna_rwlock_end_write(&rwlock) == STERNA_SUCCESS);
  EXPECT(sterna_spin_lock_give(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_unlock(&recursive) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_unfreeze(frozen) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(frozen) == STERNA_SUCCESS);
}

int main(void) {
  register_as("misbehave", STERNA_RPC_QUICK, 0, misbehave);
  register_as("echo", STERNA_RPC_QUICK, 0, echo);
  register_as("wait too early", STERNA_RPC_QUICK, 0, wait_too_early);
  register_as("signal long", STERNA_RPC_QUICK, 0, signal_long);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  set_up();
  EXPECT(sterna_rpc_call_for(sterna_node_index(), "misbehave", NULL, 0, NULL, 0, NULL,
                             STERNA_FOREVER) == STERNA_BUSY);
  expect_detail("nothing of that is allowed");
  in_callback();
  test_long();
  take_down();
  EXPECT(sterna_rpc_call_for(next_node(), "echo", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
