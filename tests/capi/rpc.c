/* Calls of all kinds: in one piece and in several, short and long ones, deferred, to many nodes.
 * Alone and in jobs of processes. */
#include "rpc.h"

enum { kLong = 300000, kShort = 1000 };

/* --- Arguments and replies of all lengths ----------------------------------------------------- */

static void test_lengths(const char* service) {
  const size_t lengths[] = {0, 1, 8, kShort, 8192, 8193, 40000, kLong};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i) {
    const size_t bytes = lengths[i];
    unsigned char* const out = filled(bytes + 1, 3);
    unsigned char* const in = calloc(bytes + 1, 1);
    size_t replied = 99;
    sterna_rpc_call* call = NULL;
    EXPECT(sterna_rpc_call_for(next_node(), service, out, bytes, in, bytes, &replied,
                               STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(replied == bytes && is_filled(in, bytes, 3) && in[bytes] == 0);
    memset(in, 0, bytes);
    /* With a timeout, that does not come, the arguments are copied. */
    EXPECT(sterna_rpc_call_for(sterna_node_index(), service, out, bytes, in, bytes, &replied,
                               UINT64_C(60000000000)) == STERNA_SUCCESS);
    EXPECT(replied == bytes && is_filled(in, bytes, 3));
    memset(in, 0, bytes);
    EXPECT(sterna_rpc_start(next_node(), service, out, bytes, &call) == STERNA_SUCCESS);
    memset(out, 0, bytes); /* They are copied. */
    EXPECT(sterna_rpc_await(call, &replied, STERNA_FOREVER) == STERNA_SUCCESS && replied == bytes);
    EXPECT(sterna_rpc_is_done(call));
    EXPECT(sterna_rpc_wait(call, in, bytes, NULL) == STERNA_SUCCESS);
    EXPECT(is_filled(in, bytes, 3));
    if (bytes > 1) {
      EXPECT(sterna_rpc_call_for(next_node(), service, in, bytes, out, bytes / 2, &replied,
                                 STERNA_FOREVER) == STERNA_TRUNCATED);
      EXPECT(replied == bytes && is_filled(out, bytes / 2, 3) && out[bytes / 2] == 0);
    }
    free(in);
    free(out);
  }
}

/* --- Piece by piece ----------------------------------------------------------------------------
 */

/* Gets a count, then so many doubles where the service wants them, then a name and bytes. */
static sterna_status sum(void* context, sterna_rpc_request* request) {
  static double room[kLong / 8];
  double total = 0;
  int count = 0, bytes = 0;
  char name[8] = "";
  (void)context;
  EXPECT(sterna_rpc_unpack_int(request, &count, 1, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  if (count < 0 || count > kLong / 8) {
    return sterna_rpc_fail(request, STERNA_REFUSED, "so many numbers are too many");
  }
  sterna_status status =
      sterna_rpc_unpack_double(request, room, (size_t)count, STERNA_UNPACK_CHEAPER);
  if (status != STERNA_SUCCESS) {
    return status;
  }
  EXPECT(sterna_rpc_unpack(request, name, sizeof name, STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_unpack_int(request, &bytes, 1, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  unsigned char* const data = malloc((size_t)bytes + 1);
  EXPECT(sterna_rpc_unpack(request, data, (size_t)bytes, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  EXPECT(is_filled(data, (size_t)bytes, 5)); /* EXPRESS: it is there. */
  free(data);
  EXPECT(sterna_rpc_wait_data(request) == STERNA_SUCCESS);
  EXPECT(strcmp(name, "numbers") == 0);
  for (int i = 0; i < count; ++i) {
    total += room[i];
  }
  return sterna_rpc_reply(request, &total, sizeof total);
}

static void pack_numbers(sterna_rpc_packing* packing, int* count, double* numbers, int bytes,
                         const unsigned char* data) {
  char name[8] = "numbers";
  EXPECT(sterna_rpc_begin(packing, "sum", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack_int(packing, count, 1, STERNA_PACK_LATER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack_double(packing, numbers, (size_t)*count, STERNA_PACK_LATER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(packing, name, sizeof name, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  memset(name, 'x', sizeof name);
  EXPECT(sterna_rpc_pack_int(packing, &bytes, 1, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(packing, data, (size_t)bytes, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  for (int i = 0; i < *count; ++i) {
    numbers[i] = 2 * i; /* LATER: the bytes of the end count. */
  }
}

static void test_packed(void) {
  static double numbers[kLong / 8];
  const int counts[] = {0, 3, kLong / 8};
  const int lengths[] = {0, 10, kLong};
  sterna_rpc_packing packing;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      int count = counts[i];
      double total = -1;
      const double expected = (double)count * (count - 1);
      unsigned char* const data = filled((size_t)lengths[j] + 1, 5);
      sterna_rpc_call* call = NULL;
      pack_numbers(&packing, &count, numbers, lengths[j], data);
      EXPECT(sterna_rpc_call_packed(&packing, next_node(), &total, sizeof total, NULL) ==
             STERNA_SUCCESS);
      EXPECT(total == expected);
      total = -1;
      pack_numbers(&packing, &count, numbers, lengths[j], data);
      EXPECT(sterna_rpc_start_packed(&packing, next_node(), &call) == STERNA_SUCCESS);
      EXPECT(sterna_rpc_wait(call, &total, sizeof total, NULL) == STERNA_SUCCESS);
      EXPECT(total == expected);
      pack_numbers(&packing, &count, numbers, lengths[j], data);
      EXPECT(sterna_rpc_post_packed(&packing, next_node()) == STERNA_SUCCESS);
      pack_numbers(&packing, &count, numbers, lengths[j], data);
      EXPECT(sterna_rpc_cancel(&packing) == STERNA_SUCCESS);
      free(data);
    }
  }
  EXPECT(sterna_rpc_pack(&packing, numbers, 1, STERNA_PACK_SAFER) == STERNA_REFUSED);
  EXPECT(sterna_rpc_call_packed(&packing, 0, NULL, 0, NULL) == STERNA_REFUSED);
  /* What does not fit together is refused, and nothing of it stays behind. */
  int count = 9;
  double total = 0;
  EXPECT(sterna_rpc_begin(&packing, "sum", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack_int(&packing, &count, 1, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, numbers, sizeof numbers, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, next_node(), &total, sizeof total, NULL) ==
         STERNA_REFUSED);
  count = -1;
  EXPECT(sterna_rpc_call_for(next_node(), "sum", &count, sizeof count, NULL, 0, NULL,
                             STERNA_FOREVER) == STERNA_REFUSED);
  expect_detail("so many numbers");
  /* A service that does not unpack has all the pieces, one after the other. */
  unsigned char* const data = filled(kLong, 5);
  unsigned char* const in = calloc(kLong, 1);
  EXPECT(sterna_rpc_begin(&packing, "echo", NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, data, 7, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, data + 7, 100000, STERNA_PACK_CHEAPER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, data + 100007, 93, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_pack(&packing, data + 100100, kLong - 100100, STERNA_PACK_SAFER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_call_packed(&packing, next_node(), in, kLong, NULL) == STERNA_SUCCESS);
  EXPECT(is_filled(in, kLong, 5));
  free(in);
  free(data);
}

/* --- Many nodes --------------------------------------------------------------------------------
 */

static sterna_status pick(void* context, sterna_rpc_request* request) {
  (void)context;
  if (sterna_node_index() == 1) {
    return sterna_rpc_fail(request, STERNA_REFUSED, "not here");
  }
  return echo(NULL, request);
}

static void test_multicast(void) {
  const uint32_t count = sterna_node_count();
  const size_t lengths[] = {12, kLong};
  sterna_rpc_result* const results = calloc(count, sizeof *results);
  for (int i = 0; i < 2; ++i) {
    const size_t bytes = lengths[i];
    unsigned char* const out = filled(bytes, 4);
    unsigned char* const in = calloc(count, bytes);
    sterna_rpc_group* group = NULL;
    EXPECT(sterna_rpc_multicast(NULL, count, "echo", out, bytes, in, bytes, results,
                                STERNA_FOREVER) == STERNA_SUCCESS);
    for (uint32_t node = 0; node < count; ++node) {
      EXPECT(results[node].node == node && results[node].status == STERNA_SUCCESS);
      EXPECT(results[node].bytes == bytes && is_filled(in + node * bytes, bytes, 4));
    }
    /* One of them refuses: the others have answered all the same. */
    memset(in, 0, count * bytes);
    EXPECT(sterna_rpc_multicast_start(NULL, count, "pick", out, bytes, &group) == STERNA_SUCCESS);
    memset(out, 0, bytes);
    const sterna_status status =
        sterna_rpc_multicast_wait(group, in, bytes, results, UINT64_C(60000000000));
    EXPECT(status == (count > 1 ? STERNA_REFUSED : STERNA_SUCCESS));
    for (uint32_t node = 0; node < count; ++node) {
      EXPECT(results[node].status == (node == 1 ? STERNA_REFUSED : STERNA_SUCCESS));
      EXPECT(node == 1 || is_filled(in + node * bytes, bytes, 4));
    }
    if (count > 1) {
      expect_detail("not here");
    }
    EXPECT(sterna_rpc_multicast_post(NULL, count, "note", out, bytes) == STERNA_SUCCESS);
    free(in);
    free(out);
  }
  free(results);
}

static int noted;

static sterna_status note(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED);
  return STERNA_SUCCESS;
}

int main(void) {
  register_as("echo", STERNA_RPC_QUICK, 0, echo);
  register_as("thread echo", STERNA_RPC_THREAD, 0, echo);
  register_as("sum", STERNA_RPC_THREAD, 1, sum);
  register_as("pick", STERNA_RPC_QUICK, 0, pick);
  register_as("note", STERNA_RPC_QUICK, 0, note);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_lengths("echo");
  test_lengths("thread echo");
  test_packed();
  test_multicast();
  const int count = (int)sterna_node_count();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(noted == 2 * count); /* The end waits for what was posted. */
  puts("No Errors");
  return 0;
}
