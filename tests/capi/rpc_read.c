/* Calls with long pieces whose caller waits, so that their node may read them where they lie, or
 * they come with the call: quick services, and such in threads, that take them at once, later, after
 * they have replied, or not at all; some are quick on one node and have a thread on another. The
 * caller's memory is changed as soon as a call has returned. Alone and in jobs of processes. */
#include <unistd.h>

#include "rpc.h"
#include "sterna/message.h"
#include "sterna/thread.h"

enum { kPieces = 3, kPieceMax = 120000, kRounds = 60, kCallers = 3 };

/* What goes with each call, before its pieces. */
typedef struct {
  uint64_t bytes[kPieces]; /* 0: there is no such piece. */
  uint64_t seed;
} head;

/* Of services that do not unpack: all pieces, one behind the other. */
static sterna_status see(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  const unsigned char* const all = sterna_rpc_arguments(request, &bytes);
  head told;
  (void)context;
  memcpy(&told, all, sizeof told);
  size_t place = sizeof told;
  for (int i = 0; i < kPieces; ++i) {
    EXPECT(place + told.bytes[i] <= bytes);
    EXPECT(is_filled(all + place, told.bytes[i], (unsigned)(told.seed + (unsigned)i)));
    place += told.bytes[i];
  }
  EXPECT(place == bytes);
  return STERNA_SUCCESS;
}

/* Of those that do: `pieces` of them, by `mode`. */
static sterna_status unpack(sterna_rpc_request* request, int pieces, sterna_unpack_mode mode,
                            int replies_first) {
  unsigned char* taken[kPieces] = {NULL};
  head told;
  EXPECT(sterna_rpc_unpack(request, &told, sizeof told, STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_bytes_left(request) == told.bytes[0] + told.bytes[1] + told.bytes[2]);
  for (int i = 0; i < pieces && told.bytes[i] != 0; ++i) {
    if (replies_first && i == 1) { /* From here on without the caller's wait for the reply. */
      EXPECT(sterna_rpc_reply_now(request, NULL, 0) == STERNA_SUCCESS);
    }
    taken[i] = malloc(told.bytes[i]);
    EXPECT(taken[i] != NULL);
    EXPECT(sterna_rpc_unpack(request, taken[i], told.bytes[i], mode) == STERNA_SUCCESS);
    EXPECT(mode != STERNA_UNPACK_EXPRESS ||
           is_filled(taken[i], told.bytes[i], (unsigned)(told.seed + (unsigned)i)));
  }
  EXPECT(sterna_rpc_wait_data(request) == STERNA_SUCCESS);
  for (int i = 0; i < kPieces; ++i) {
    EXPECT(taken[i] == NULL ||
           is_filled(taken[i], told.bytes[i], (unsigned)(told.seed + (unsigned)i)));
    free(taken[i]);
  }
  return STERNA_SUCCESS;
}

static sterna_status take(void* context, sterna_rpc_request* request) {
  (void)context;
  return unpack(request, kPieces, STERNA_UNPACK_EXPRESS, 0);
}

static sterna_status take_later(void* context, sterna_rpc_request* request) {
  (void)context;
  return unpack(request, kPieces, STERNA_UNPACK_CHEAPER, 0);
}

static sterna_status take_one(void* context, sterna_rpc_request* request) {
  (void)context;
  return unpack(request, 1, STERNA_UNPACK_EXPRESS, 0);
}

static sterna_status take_none(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  return STERNA_BUSY;
}

static sterna_status take_replied(void* context, sterna_rpc_request* request) {
  (void)context;
  return unpack(request, kPieces, STERNA_UNPACK_EXPRESS, 1);
}

static const struct {
  const char* name;
  sterna_rpc_kind kind;
  int unpacks;
  sterna_rpc_service service;
  sterna_status status;
} kServices[] = {{"see", STERNA_RPC_QUICK, 0, see, STERNA_SUCCESS},
                 {"see in thread", STERNA_RPC_THREAD, 0, see, STERNA_SUCCESS},
                 {"take", STERNA_RPC_QUICK, 1, take, STERNA_SUCCESS},
                 {"take in thread", STERNA_RPC_THREAD, 1, take, STERNA_SUCCESS},
                 {"take later", STERNA_RPC_THREAD, 1, take_later, STERNA_SUCCESS},
                 {"take one", STERNA_RPC_THREAD, 1, take_one, STERNA_SUCCESS},
                 {"take none", STERNA_RPC_THREAD, 1, take_none, STERNA_BUSY},
                 {"take replied", STERNA_RPC_THREAD, 1, take_replied, STERNA_SUCCESS},
                 {"see here or there", STERNA_RPC_QUICK, 0, see, STERNA_SUCCESS},
                 {"take here or there", STERNA_RPC_QUICK, 1, take, STERNA_SUCCESS}};
enum { kServiceCount = sizeof kServices / sizeof kServices[0] };

static void call_once(int which, unsigned round, const sterna_rpc_options* options,
                      unsigned char** pieces) {
  head told = {{0}, round};
  sterna_rpc_packing packing;
  const int count = 1 + (int)(round % kPieces);
  EXPECT(sterna_rpc_begin(&packing, kServices[which].name, options) == STERNA_SUCCESS);
  for (int i = 0; i < count; ++i) {
    const unsigned least = round % 2 == 0 ? 9000 : 60000;
    told.bytes[i] = least + (round * 7919 + (unsigned)i * 4001) % (kPieceMax - least);
    free(pieces[i]);
    pieces[i] = filled(told.bytes[i], round + (unsigned)i);
  }
  EXPECT(sterna_rpc_pack(&packing, &told, sizeof told, STERNA_PACK_SAFER) == STERNA_SUCCESS);
  for (int i = 0; i < count; ++i) {
    EXPECT(sterna_rpc_pack(&packing, pieces[i], told.bytes[i], STERNA_PACK_CHEAPER) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_call_packed(&packing, next_node(), NULL, 0, NULL) == kServices[which].status);
  for (int i = 0; i < count; ++i) {
    memset(pieces[i], 0, told.bytes[i]);
  }
}

static void call_all(void* argument) {
  const unsigned first = (unsigned)(uintptr_t)argument;
  unsigned char* pieces[kPieces] = {NULL};
  sterna_rpc_options some_time = STERNA_RPC_OPTIONS_DEFAULT;
  some_time.timeout_ns = UINT64_C(100000000000);
  for (unsigned round = first; round < first + kRounds; ++round) {
    for (int which = 0; which < kServiceCount; ++which) {
      call_once(which, round, round % 5 == 4 ? &some_time : NULL, pieces);
    }
  }
  for (int i = 0; i < kPieces; ++i) {
    free(pieces[i]);
  }
}

int main(void) {
  sterna_thread* callers[kCallers];
  for (int i = 0; i < kServiceCount; ++i) {
    const int is_odd = strstr(kServices[i].name, "here or there") != NULL && getpid() % 2 == 1;
    register_as(kServices[i].name, is_odd ? STERNA_RPC_THREAD : kServices[i].kind,
                kServices[i].unpacks, kServices[i].service);
  }
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  call_all(NULL);
  for (int i = 0; i < kCallers; ++i) {
    EXPECT(sterna_thread_create(NULL, call_all, (void*)(uintptr_t)(1000 * (i + 1)), &callers[i]) ==
           STERNA_SUCCESS);
  }
  for (int i = 0; i < kCallers; ++i) {
    EXPECT(sterna_thread_join(callers[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
