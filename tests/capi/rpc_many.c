/* Many calls with any number of pieces, of any length, from several threads at once; services that
 * refuse or leave pieces, and whose threads are asked for in turn. What a call takes of memory is
 * used again by the next ones, of another shape. Alone and in jobs of processes. */
#include "rpc.h"
#include "sterna/control.h"
#include "sterna/thread.h"

enum { kThreads = 4, kRounds = 150, kPiecesMax = 11, kLongest = 200000 };

static unsigned char* pattern; /* Of kLongest bytes: a piece begins at its seed. */

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

/* Short and long ones, at both sides of the bounds of what is kept in place. */
static size_t length_of(uint32_t random) {
  static const size_t kLengths[] = {0,    1,    150,   183,   184,   185,  700,
                                    8192, 8193, 20000, 65536, 70000, 8000, kLongest - 64};
  return kLengths[random % (sizeof kLengths / sizeof *kLengths)];
}

typedef struct {
  uint32_t seed, count, taken; /* `taken`: the service leaves the others. */
} Plan;

/* Says how many pieces were as they should be. */
static sterna_status take_planned(void* context, sterna_rpc_request* request) {
  Plan plan;
  unsigned char* pieces[kPiecesMax];
  size_t lengths[kPiecesMax];
  uint32_t good = 0;
  (void)context;
  EXPECT(sterna_rpc_unpack(request, &plan, sizeof plan, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  EXPECT(plan.count <= kPiecesMax && plan.taken <= plan.count);
  uint32_t state = plan.seed;
  for (uint32_t i = 0; i < plan.taken; ++i) {
    lengths[i] = length_of(next_random(&state));
    pieces[i] = malloc(lengths[i] + 1);
    EXPECT(pieces[i] != NULL);
    const uint32_t mode = next_random(&state) % 2;
    EXPECT(sterna_rpc_unpack(request, pieces[i], lengths[i],
                             mode == 0 ? STERNA_UNPACK_EXPRESS : STERNA_UNPACK_CHEAPER) ==
           STERNA_SUCCESS);
    EXPECT(mode != 0 || memcmp(pieces[i], pattern + i, lengths[i]) == 0);
    (void)next_random(&state); /* How it was packed. */
  }
  EXPECT(sterna_rpc_wait_data(request) == STERNA_SUCCESS);
  for (uint32_t i = 0; i < plan.taken; ++i) {
    good += memcmp(pieces[i], pattern + i, lengths[i]) == 0;
    free(pieces[i]);
  }
  if (plan.taken < plan.count && plan.seed % 2 == 0) {
    return sterna_rpc_fail(request, STERNA_BUSY, "the others are left");
  }
  return sterna_rpc_reply(request, &good, sizeof good);
}

static void pack_planned(sterna_rpc_packing* packing, const char* service, const Plan* plan) {
  static const sterna_pack_mode kModes[] = {STERNA_PACK_SAFER, STERNA_PACK_LATER,
                                            STERNA_PACK_CHEAPER};
  uint32_t state = plan->seed;
  EXPECT(sterna_rpc_begin(packing, service, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(packing, plan, sizeof *plan, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  for (uint32_t i = 0; i < plan->count; ++i) {
    const size_t length = length_of(next_random(&state));
    (void)next_random(&state); /* How it is unpacked. */
    EXPECT(sterna_rpc_pack(packing, pattern + i, length, kModes[next_random(&state) % 3]) ==
           STERNA_SUCCESS);
  }
}

static void call_planned(const Plan* plan, uint32_t node) {
  sterna_rpc_packing packing;
  uint32_t good = 0;
  const int is_refused = plan->taken < plan->count && plan->seed % 2 == 0;
  pack_planned(&packing, "take planned", plan);
  if (plan->seed % 3 != 0) {
    const sterna_status status =
        sterna_rpc_call_packed(&packing, node, &good, sizeof good, NULL);
    EXPECT(status == (is_refused ? STERNA_BUSY : STERNA_SUCCESS));
  } else {
    sterna_rpc_call* call = NULL;
    EXPECT(sterna_rpc_start_packed(&packing, node, &call) == STERNA_SUCCESS);
    const sterna_status status = sterna_rpc_wait(call, &good, sizeof good, NULL);
    EXPECT(status == (is_refused ? STERNA_BUSY : STERNA_SUCCESS));
  }
  EXPECT(is_refused || good == plan->taken);
}

/* A service that finds all pieces in their places, and gives them back. */
static void call_echo(size_t before, size_t middle, size_t after) {
  sterna_rpc_packing packing;
  const size_t whole = before + middle + after;
  unsigned char* const back = malloc(whole + 1);
  size_t bytes = 0;
  EXPECT(back != NULL);
  EXPECT(sterna_rpc_begin(&packing, "echo", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, pattern, before, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, pattern + before, middle, STERNA_PACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, pattern + before + middle, after, STERNA_PACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, next_node(), back, whole, &bytes) == STERNA_SUCCESS);
  EXPECT(bytes == whole && memcmp(back, pattern, whole) == 0);
  free(back);
}

static void call_often(void* argument) {
  uint32_t state = (uint32_t)(uintptr_t)argument * 7919 + sterna_node_index();
  for (int i = 0; i < kRounds; ++i) {
    Plan plan = {.seed = next_random(&state)};
    plan.count = next_random(&state) % (kPiecesMax + 1);
    plan.taken = i % 4 == 0 ? next_random(&state) % (plan.count + 1) : plan.count;
    call_planned(&plan, next_random(&state) % sterna_node_count());
    if (i % 8 == 0) { /* Nobody there takes any. */
      sterna_rpc_packing packing;
      pack_planned(&packing, "unknown", &plan);
      EXPECT(sterna_rpc_call_packed(&packing, next_node(), NULL, 0, NULL) == STERNA_NOT_FOUND);
    }
    if (i % 8 == 1) {
      sterna_rpc_packing packing;
      pack_planned(&packing, "take planned", &plan);
      EXPECT(sterna_rpc_cancel(&packing) == STERNA_SUCCESS);
    }
    if (i % 8 == 2) {
      call_echo(length_of(next_random(&state)) % 9000, length_of(next_random(&state)) / 3,
                length_of(next_random(&state)) % 9000);
    }
  }
}

/* --- The threads of one service, as it is changed while it is called -------------------------- */

static sterna_status tell_priority(void* context, sterna_rpc_request* request) {
  uint32_t priority = 99;
  (void)context;
  EXPECT(sterna_thread_priority(sterna_thread_self(), &priority) == STERNA_SUCCESS);
  return sterna_rpc_reply(request, &priority, sizeof priority);
}

static void expect_priority(uint32_t wish, uint32_t expected) {
  sterna_rpc_packing packing;
  sterna_rpc_options options = STERNA_RPC_OPTIONS_DEFAULT;
  uint32_t told = 0;
  options.priority = wish;
  EXPECT(sterna_rpc_begin(&packing, "tell priority", &options) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, sterna_node_index(), &told, sizeof told, NULL) ==
         STERNA_SUCCESS);
  EXPECT(told == expected);
}

static void test_changes(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  const uint32_t usual = options.priority;
  /* What one call wants says nothing of the next. */
  expect_priority(STERNA_PRIORITY_BATCH, STERNA_PRIORITY_BATCH);
  expect_priority(STERNA_RPC_AS_REGISTERED, usual);
  expect_priority(STERNA_PRIORITY_BATCH, STERNA_PRIORITY_BATCH);
  expect_priority(STERNA_RPC_AS_REGISTERED, usual);
  options.priority = STERNA_PRIORITY_REAL_TIME;
  EXPECT(sterna_rpc_set_thread("tell priority", &options) == STERNA_SUCCESS);
  expect_priority(STERNA_RPC_AS_REGISTERED, STERNA_PRIORITY_REAL_TIME);
  /* One that no thread can have is an error each time, and can be mended. */
  options.priority = usual;
  options.worker = sterna_worker_count();
  EXPECT(sterna_rpc_set_thread("tell priority", &options) == STERNA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_rpc_call_for(sterna_node_index(), "tell priority", NULL, 0, NULL, 0, NULL,
                               STERNA_FOREVER) == STERNA_INVALID_ARGUMENT);
    expect_detail("gets no thread");
  }
  options.worker = STERNA_ANY_WORKER;
  EXPECT(sterna_rpc_set_thread("tell priority", &options) == STERNA_SUCCESS);
  expect_priority(STERNA_RPC_AS_REGISTERED, usual);
}

int main(void) {
  sterna_thread* threads[kThreads];
  pattern = filled(kLongest, 3);
  register_as("take planned", STERNA_RPC_THREAD, 1, take_planned);
  register_as("echo", STERNA_RPC_THREAD, 0, echo);
  register_as("tell priority", STERNA_RPC_THREAD, 0, tell_priority);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  for (uintptr_t i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_create(NULL, call_often, (void*)(i + 1), &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  test_changes();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  free(pattern);
  puts("No Errors");
  return 0;
}
