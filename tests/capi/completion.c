/* Completions: signalled from everywhere, while their waiter moves. Alone, in jobs of processes,
 * and of mobile ranks, which move before, while and after the signal is on its way. */
#include "sterna/completion.h"

#include <string.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/migrate.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kRounds = 12, kLong = 40000 };

static int is_mobile;

/* A mobile rank goes on to another node; others stay. */
static void move(int by) {
  if (is_mobile) {
    EXPECT(sterna_migrate_to((sterna_node_index() + (uint32_t)by) % sterna_node_count()) ==
           STERNA_SUCCESS);
  }
}

static void expect_detail(const char* words) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, words) != NULL);
}

/* Each rank asks the next one for a signal, and gives the one before it what it asked for: the
 * token travels in a message, and again by way of a third rank. */
static void test_ring(void) {
  const uint32_t count = sterna_rank_count();
  const uint32_t to = (sterna_rank() + 1) % count;
  const uint32_t far = (sterna_rank() + 2) % count;
  static unsigned char out[kLong], in[kLong];
  for (int round = 0; round < kRounds; ++round) {
    const size_t bytes = round % 3 == 0 ? kLong : (size_t)round;
    sterna_completion completion;
    sterna_completion_token token, other;
    size_t stored = 99;
    EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
    EXPECT(sterna_message_send(to, 1, &token, sizeof token) == STERNA_SUCCESS);
    move(1);
    EXPECT(sterna_message_receive(STERNA_ANY_RANK, 1, &other, sizeof other, NULL) ==
           STERNA_SUCCESS);
    EXPECT(sterna_message_send(far, 2, &other, sizeof other) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive(STERNA_ANY_RANK, 2, &other, sizeof other, NULL) ==
           STERNA_SUCCESS);
    memset(out, round + 1, bytes);
    EXPECT(sterna_completion_signal(&other, out, bytes) == STERNA_SUCCESS);
    EXPECT(sterna_completion_signal(&other, out, bytes) == STERNA_SUCCESS); /* Nobody hears it. */
    move(1 + round % 2);
    if (round % 4 == 1) { /* It moves after the signal is there, too. */
      while (!sterna_completion_is_done(&completion)) {
        EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
      }
      move(1);
    }
    memset(in, 0, sizeof in);
    EXPECT(sterna_completion_wait(&completion, in, sizeof in, &stored, STERNA_FOREVER) ==
           STERNA_SUCCESS);
    EXPECT(stored == bytes);
    for (size_t i = 0; i < bytes; ++i) {
      EXPECT(in[i] == round + 1);
    }
    EXPECT(in[bytes < kLong ? bytes : 0] == (bytes < kLong ? 0 : round + 1));
    EXPECT(sterna_completion_wait(&completion, NULL, 0, NULL, 0) == STERNA_INVALID_ARGUMENT);
  }
}

static void test_endings(void) {
  sterna_completion completion;
  sterna_completion_token token, nonsense;
  char data[4];
  size_t bytes = 0;
  EXPECT(sterna_completion_init(&completion, sterna_node_index(), &token) == STERNA_SUCCESS);
  EXPECT(!sterna_completion_is_done(&completion));
  EXPECT(sterna_completion_wait(&completion, NULL, 0, NULL, 1000) == STERNA_TIMED_OUT);
  move(1);
  EXPECT(sterna_completion_fail(&token, "no luck") == STERNA_SUCCESS);
  EXPECT(sterna_completion_wait(&completion, NULL, 0, NULL, STERNA_FOREVER) == STERNA_REFUSED);
  expect_detail("no luck");
  EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
  EXPECT(sterna_completion_signal(&token, "payload", 7) == STERNA_SUCCESS);
  EXPECT(sterna_completion_wait(&completion, data, 4, &bytes, STERNA_FOREVER) == STERNA_TRUNCATED);
  EXPECT(bytes == 7 && memcmp(data, "payl", 4) == 0);
  EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
  EXPECT(sterna_completion_destroy(&completion) == STERNA_SUCCESS);
  EXPECT(sterna_completion_signal(&token, NULL, 0) == STERNA_SUCCESS); /* Too late. */
  memset(&nonsense, 0xff, sizeof nonsense);
  EXPECT(sterna_completion_signal(&nonsense, NULL, 0) == STERNA_INVALID_ARGUMENT);
  nonsense = token; /* All but its number is right. */
  nonsense.opaque[1] |= UINT64_C(1) << 63;
  EXPECT(sterna_completion_signal(&nonsense, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_completion_signal(NULL, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_completion_init(&completion, sterna_node_count(), &token) ==
         STERNA_INVALID_ARGUMENT);
}

/* A quick service gets a token as its argument, and signals. */
static sterna_status signal_it(void* context, sterna_rpc_request* request) {
  sterna_completion_token token;
  size_t bytes = 0;
  const void* const arguments = sterna_rpc_arguments(request, &bytes);
  (void)context;
  EXPECT(bytes == sizeof token);
  memcpy(&token, arguments, sizeof token);
  return sterna_completion_signal(&token, "by rpc", 7);
}

static void test_rpc(void) {
  sterna_completion completion;
  sterna_completion_token token;
  char text[8] = "";
  EXPECT(sterna_completion_init(&completion, STERNA_ANY_NODE, &token) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_post((sterna_node_index() + 1) % sterna_node_count(), "signal it", &token,
                         sizeof token) == STERNA_SUCCESS);
  EXPECT(sterna_completion_wait(&completion, text, sizeof text, NULL, STERNA_FOREVER) ==
         STERNA_SUCCESS);
  EXPECT(strcmp(text, "by rpc") == 0);
}

int main(void) {
  is_mobile =
      sterna_rpc_register("signal it", STERNA_RPC_QUICK, signal_it, NULL) == STERNA_UNSUPPORTED;
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_ring();
  test_endings();
  if (!is_mobile) {
    test_rpc();
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
