/* Wrong use of requests, sessions and packs is told, and breaks nothing. As one rank, several, and
 * mobile ranks that move meanwhile. */
#include "ring.h"
#include "sterna/pack.h"
#include "sterna/session.h"

static void test_misuse(void) {
  sterna_message_request request;
  sterna_envelope envelope;
  int done = 0;
  memset(&request, 0, sizeof request);
  EXPECT(sterna_message_start(&request) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_wait(NULL, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send_init(&request, sterna_rank_count(), 0, NULL, 0) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send_init(&request, 0, -1, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send_init(&request, 0, 0, NULL, 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send_init(&request, 0, 0, &request, SIZE_MAX) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send(0, 0, &request, ((size_t)1 << 47) + 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_receive_init(&request, STERNA_ANY_RANK, -2, NULL, 0) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_receive_init(&request, STERNA_ANY_RANK, STERNA_ANY_TAG, NULL, 0) ==
         STERNA_SUCCESS);
  EXPECT(sterna_message_set_mask(&request, 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_set_mode(&request, STERNA_SEND_SYNCHRONOUS) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_set_layout(&request, NULL, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_wait(&request, NULL) == STERNA_REFUSED); /* Not started. */
  EXPECT(detail_has("any rank") && detail_has("is not started"));
  EXPECT(sterna_message_test(&request, NULL, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_cancel(&request) == STERNA_REFUSED);
  EXPECT(sterna_message_receive_init(&request, from, 77, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_BUSY);
  EXPECT(sterna_message_set_pieces(&request, NULL, 0) == STERNA_BUSY && detail_has("tag 77"));
  EXPECT(sterna_message_test(&request, &done, NULL) == STERNA_SUCCESS && done == 0);
  EXPECT(sterna_message_wait_for(&request, 0, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_wait_for(&request, 1000000, &envelope) == STERNA_TIMED_OUT);
  wander();
  EXPECT(sterna_message_cancel(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&request) == STERNA_REFUSED);
  EXPECT(sterna_message_wait(&request, NULL) == STERNA_CANCELLED);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS); /* And again. */
  EXPECT(sterna_message_cancel(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_test(&request, &done, NULL) == STERNA_CANCELLED && done == 1);
}

/* One that is started is not described anew: the transport has it. */
static void test_described_while_started(void) {
  sterna_message_request in;
  char byte = 0;
  EXPECT(sterna_message_receive_start(&in, from, 78, &byte, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive_start(&in, from, 79, &byte, 1) == STERNA_BUSY);
  EXPECT(detail_has("sterna_message_receive_start") && detail_has("tag 78"));
  EXPECT(sterna_message_receive_init(&in, from, 79, &byte, 1) == STERNA_BUSY);
  EXPECT(sterna_message_send_start(&in, to, 79, &byte, 1) == STERNA_BUSY);
  wander();
  EXPECT(sterna_message_send_init(&in, to, 79, &byte, 1) == STERNA_BUSY && detail_has("tag 78"));
  EXPECT(sterna_message_send(to, 78, "x", 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, NULL) == STERNA_SUCCESS && byte == 'x');
  EXPECT(sterna_message_receive_start(&in, from, 79, &byte, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&in) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, NULL) == STERNA_CANCELLED && !detail_has("thread"));
}

/* What calls at once fail with is told as well, not what was refused before. */
static void test_told_at_once(void) {
  sterna_envelope envelope;
  char byte = 0;
  EXPECT(sterna_message_send(to, 80, "long", 4) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(from, 80, &byte, 1, &envelope) == STERNA_TRUNCATED);
  EXPECT(detail_has("sterna_message_receive:") && detail_has("tag 80") && byte == 'l');
}

/* What stands there twice counts once. */
static void test_twice(void) {
  sterna_message_request in, out;
  sterna_message_request* const all[4] = {&in, &out, &in, &out};
  size_t index = 9;
  EXPECT(sterna_message_receive_start(&in, from, 1, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_send_init(&out, to, 1, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_mode(&out, STERNA_SEND_SYNCHRONOUS) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&out) == STERNA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_message_wait_any(all, 4, STERNA_FOREVER, &index, NULL) == STERNA_SUCCESS);
    EXPECT(index < 2);
  }
  EXPECT(sterna_message_wait_any(all, 4, STERNA_FOREVER, &index, NULL) == STERNA_NOT_FOUND);
  EXPECT(sterna_message_receive_start(&in, from, 1, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait_any(all, 4, 1000000, &index, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_cancel(&in) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait_all(all, 4, STERNA_FOREVER) == STERNA_CANCELLED);
}

enum { kPieces = 400 };
static struct fickle {
  int asked, grows_at, by;
  char bytes[kPieces * 4];
} fickle;

/* More pieces, longer ones, or shorter ones, once it has been asked so often. */
static int next_fickle(const void* layout, size_t index, sterna_piece* piece) {
  struct fickle* const its = &fickle;
  (void)layout;
  const int is_late = its->asked++ >= its->grows_at;
  piece->address = its->bytes + 4 * index;
  piece->bytes = is_late && its->by == 1 ? 3 : is_late && its->by == 2 ? 1 : 2;
  return index < (is_late && its->by == 0 ? kPieces : kPieces - 390);
}

static int next_fickle_of_many(const void* layout, size_t index, sterna_piece* piece) {
  const int is_there = next_fickle(layout, index, piece);
  return is_there || index < kPieces / 2;
}

static void test_pieces(void) {
  sterna_message_request out;
  char block = 0;
  EXPECT(sterna_message_send_init(&out, to, 2, &block, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_strided(&out, 2, SIZE_MAX, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_set_strided(&out, 1, (size_t)1 << 50, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(detail_has("more than there can be"));
  EXPECT(sterna_message_set_strided(&out, 0, SIZE_MAX, 1) == STERNA_SUCCESS); /* Of no bytes. */
  EXPECT(sterna_message_start(&out) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(from, 2, NULL, 0, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
  for (int i = 0; i < 6; ++i) {
    EXPECT(sterna_message_set_layout(&out, i < 3 ? next_fickle : next_fickle_of_many, NULL) ==
           STERNA_SUCCESS);
    fickle.asked = 0;
    fickle.by = i % 3;
    fickle.grows_at = i < 3 ? 11 : kPieces / 2 + 1; /* After the first look at all of them. */
    EXPECT(sterna_message_start(&out) == STERNA_REFUSED && detail_has("in different ways"));
  }
}

/* A request of a session that is closed. */
static void test_closed_session(void) {
  sterna_session session, unopened;
  sterna_message_request out;
  memset(&unopened, 0, sizeof unopened);
  EXPECT(sterna_session_open(&session, "wrong") == STERNA_SUCCESS);
  EXPECT(sterna_message_send_init(&out, to, 3, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_session(&out, &session) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_session(&out, &unopened) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_close(&session) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&out) == STERNA_INVALID_ARGUMENT && detail_has("closed"));
  EXPECT(sterna_message_set_session(&out, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&out) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(from, 3, NULL, 0, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
}

static sterna_unpacking unpacking;
static sterna_matched_message* matched;
static int has_called; /* Atomic. */

/* All that waits is refused where nobody could poll meanwhile. */
static void wait_in_vain(void* argument, sterna_message_request* request, sterna_status status,
                         const sterna_envelope* envelope) {
  sterna_session session;
  sterna_unpacking another;
  char bytes[5000];
  (void)argument, (void)request, (void)envelope;
  EXPECT(status == STERNA_CANCELLED);
  EXPECT(sterna_session_open(&session, "late") == STERNA_DEADLOCK && detail_has("callback"));
  EXPECT(sterna_unpack_begin(&another, NULL, from, 4, NULL) == STERNA_DEADLOCK);
  EXPECT(sterna_unpack(&unpacking, bytes, sizeof bytes, STERNA_PACK_CHEAPER,
                       STERNA_UNPACK_EXPRESS) == STERNA_DEADLOCK);
  EXPECT(sterna_unpack_end(&unpacking) == STERNA_DEADLOCK);
  EXPECT(sterna_message_receive_matched(matched, bytes, 4, NULL) == STERNA_DEADLOCK &&
         detail_has("callback"));
  __atomic_store_n(&has_called, 1, __ATOMIC_RELEASE);
}

static void test_waits_in_callbacks(void) {
  static char sent[5000], got[5000];
  sterna_packing packing;
  sterna_message_request request;
  EXPECT(sterna_pack_begin(&packing, NULL, to, 4) == STERNA_SUCCESS);
  EXPECT(sterna_pack(&packing, sent, sizeof sent, STERNA_PACK_CHEAPER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack_start_end(&packing) == STERNA_SUCCESS);
  EXPECT(sterna_unpack_begin(&unpacking, NULL, from, 4, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_send(to, 6, "four", 4) == STERNA_SUCCESS);
  EXPECT(sterna_message_matched_probe_for(from, 6, STERNA_WHOLE_TAG, STERNA_FOREVER, &matched,
                                          NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive_init(&request, from, 5, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&request, wait_in_vain, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&request) == STERNA_SUCCESS);
  while (!__atomic_load_n(&has_called, __ATOMIC_ACQUIRE)) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
  }
  EXPECT(sterna_unpack(&unpacking, got, sizeof got, STERNA_PACK_CHEAPER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
  EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
  /* The message that was refused is still the program's. */
  EXPECT(sterna_message_receive_matched(matched, got, 4, NULL) == STERNA_SUCCESS);
  EXPECT(memcmp(got, "four", 4) == 0);
}

int main(void) {
  sterna_message_request request;
  const int is_mobile = sterna_node_count() != 1 || sterna_rank_count() != 1;
  EXPECT(is_mobile || sterna_message_send_init(&request, 0, 0, NULL, 0) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  test_misuse();
  test_described_while_started();
  test_told_at_once();
  test_twice();
  test_pieces();
  test_closed_session();
  test_waits_in_callbacks();
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
