/* sterna_error_detail is about the last refusal: of calls whose refusal is no mistake of the
 * program, too. Each is asked after one of another call. */
#include <string.h>

#include "expect.h"
#include "sterna/completion.h"
#include "sterna/message.h"
#include "sterna/pack.h"
#include "sterna/sterna.h"

static void refuse_another(void) {
  char text[512];
  EXPECT(sterna_message_send(UINT32_MAX, 0, NULL, 0) != STERNA_SUCCESS);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strncmp(text, "sterna_message_send: ", strlen("sterna_message_send: ")) == 0);
}

static void expect_about(const char* call) {
  char text[512];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  if (strncmp(text, call, strlen(call)) != 0) {
    fprintf(stderr, "not true: \"%s\" is about %s\n", text, call);
    exit(1);
  }
}

static void test_completions(void) {
  sterna_completion completion;
  sterna_completion_token token;
  memset(&token, 0, sizeof token);
  refuse_another();
  EXPECT(sterna_completion_init(&completion, 0, &token) == STERNA_NOT_STARTED);
  expect_about("sterna_completion_init: ");
  refuse_another();
  EXPECT(sterna_completion_signal(&token, NULL, 0) == STERNA_NOT_STARTED);
  expect_about("sterna_completion_signal: ");
}

static void test_queues(void) {
  sterna_message_queue queue = STERNA_MESSAGE_QUEUE_INIT;
  sterna_message_request* request = NULL;
  for (uint64_t timeout_ns = 0; timeout_ns <= 1000000; timeout_ns += 1000000) {
    refuse_another();
    EXPECT(sterna_message_queue_take(&queue, timeout_ns, &request, NULL, NULL) == STERNA_TIMED_OUT);
    expect_about("sterna_message_queue_take: ");
  }
}

static void test_texts(void) {
  sterna_packing packing;
  sterna_unpacking unpacking;
  char got[32];
  size_t length = 0;
  EXPECT(sterna_pack_begin(&packing, NULL, sterna_rank(), 1) == STERNA_SUCCESS);
  refuse_another();
  EXPECT(sterna_pack_string(&packing, NULL, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_INVALID_ARGUMENT);
  expect_about("sterna_pack_string: ");
  EXPECT(sterna_pack_string(&packing, "a text", STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack_start_end(&packing) == STERNA_SUCCESS);
  EXPECT(sterna_unpack_begin(&unpacking, NULL, sterna_rank(), 1, NULL) == STERNA_SUCCESS);
  refuse_another();
  EXPECT(sterna_unpack_string(&unpacking, got, 3, &length, STERNA_PACK_SAFER,
                              STERNA_UNPACK_EXPRESS) == STERNA_TRUNCATED);
  expect_about("sterna_unpack_string: the text has 7 bytes");
  EXPECT(sterna_unpack(&unpacking, got, length + 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(strcmp(got, "a text") == 0);
  EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
  EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
}

int main(void) {
  sterna_message_queue queue = STERNA_MESSAGE_QUEUE_INIT;
  sterna_message_request* request = NULL;
  test_completions();
  refuse_another();
  EXPECT(sterna_message_queue_take(&queue, 0, &request, NULL, NULL) == STERNA_NOT_STARTED);
  expect_about("sterna_message_queue_take: ");
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_queues();
  test_texts();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  test_completions();
  puts("No Errors");
  return 0;
}
