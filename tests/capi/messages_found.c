/* Which message a receive finds: masks of tags, matched probes, sessions. As one rank, several, and
 * mobile ranks that move meanwhile. */
#include "ring.h"
#include "sterna/session.h"

enum { kLarge = 400000 };

/* Receives with masks and without, posted and not: the oldest that fits gets the message. */
static void test_masks(void) {
  sterna_message_request in[4];
  sterna_session session; /* The mask 0 takes all: not what meet() sends. */
  int got[4] = {-1, -1, -1, -1};
  const uint32_t masks[4] = {0xf00, 0x00f, ~UINT32_C(0), 0};
  const int32_t tags[4] = {0x300, 0x007, 0x311, 0x5};
  EXPECT(sterna_session_open(&session, "masks") == STERNA_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_message_receive_init(&in[i], from, tags[i], &got[i], sizeof(int)) ==
           STERNA_SUCCESS);
    EXPECT(sterna_message_set_mask(&in[i], masks[i]) == STERNA_SUCCESS);
    EXPECT(sterna_message_set_session(&in[i], &session) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&in[i]) == STERNA_SUCCESS);
  }
  meet();
  wander();
  const int32_t sent[4] = {0x417, 0x311, 0x311, 0x999};
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_session_send(&session, to, sent[i], &i, sizeof i) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 4; ++i) {
    sterna_envelope envelope;
    EXPECT(sterna_message_wait(&in[i], &envelope) == STERNA_SUCCESS);
    EXPECT(got[i] == (i == 0 ? 1 : i == 1 ? 0 : i) && envelope.tag == sent[got[i]]);
  }
  /* The messages come first: a masked receive takes the oldest that fits. */
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_session_send(&session, to, sent[i], &i, sizeof i) == STERNA_SUCCESS);
  }
  meet();
  EXPECT(sterna_message_start(&in[1]) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in[1], NULL) == STERNA_SUCCESS && got[1] == 0);
  EXPECT(sterna_message_start(&in[3]) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in[3], NULL) == STERNA_SUCCESS && got[3] == 1);
  EXPECT(sterna_message_start(&in[3]) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in[3], NULL) == STERNA_SUCCESS && got[3] == 2);
  EXPECT(sterna_message_start(&in[0]) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait_for(&in[0], 1000000, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_cancel(&in[0]) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in[0], NULL) == STERNA_CANCELLED);
  EXPECT(sterna_session_receive(&session, from, 0x999, &got[0], sizeof(int), NULL) ==
         STERNA_SUCCESS);
  EXPECT(sterna_session_close(&session) == STERNA_SUCCESS);
}

static void test_matched(void) {
  sterna_matched_message *first = NULL, *second = NULL;
  sterna_message_request out, in;
  sterna_envelope envelope;
  char small[8] = "matched";
  char* const large = malloc(kLarge);
  EXPECT(large != NULL);
  memset(large, 'm', kLarge);
  EXPECT(sterna_message_matched_probe(from, 20, &first, &envelope) == STERNA_SUCCESS);
  EXPECT(first == NULL);
  meet();
  EXPECT(sterna_message_send_start(&out, to, 20, large, kLarge) == STERNA_SUCCESS);
  EXPECT(sterna_message_send(to, 20, small, sizeof small) == STERNA_SUCCESS);
  while (first == NULL) {
    EXPECT(sterna_message_matched_probe(from, STERNA_ANY_TAG, &first, &envelope) == STERNA_SUCCESS);
  }
  EXPECT(envelope.source == from && envelope.tag == 20 && envelope.bytes == kLarge);
  while (second == NULL) {
    EXPECT(sterna_message_matched_probe(STERNA_ANY_RANK, 20, &second, &envelope) == STERNA_SUCCESS);
  }
  EXPECT(envelope.bytes == sizeof small);
  wander();
  memset(small, 0, sizeof small);
  EXPECT(sterna_message_receive_matched(second, small, sizeof small, &envelope) == STERNA_SUCCESS);
  EXPECT(envelope.bytes == sizeof small && strcmp(small, "matched") == 0);
  char* const got = calloc(1, kLarge);
  EXPECT(got != NULL);
  EXPECT(sterna_message_receive_init(&in, 0, 0, got, kLarge) == STERNA_SUCCESS);
  EXPECT(sterna_message_start_matched(&out, first) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_start_matched(&in, first) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, &envelope) == STERNA_SUCCESS);
  EXPECT(envelope.tag == 20 && envelope.bytes == kLarge && got[0] == 'm' && got[kLarge - 1] == 'm');
  EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
  free(got);
  free(large);
}

/* Two libraries with the same tags, and the program beside them; ranks open in different orders. */
static void test_sessions(void) {
  sterna_session first, second, again;
  sterna_session* const in_order[2] = {&first, &second};
  const char* const names[2] = {"solver", "mesh"};
  sterna_message_request request;
  sterna_envelope envelope;
  char long_name[64];
  int value = 0, found = 0;
  memset(long_name, 'x', sizeof long_name);
  long_name[63] = '\0';
  EXPECT(sterna_session_open(&first, "") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_open(&first, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_open(&first, long_name) == STERNA_INVALID_ARGUMENT);
  memset(&first, 0, sizeof first);
  EXPECT(sterna_session_send(&first, to, 0, NULL, 0) == STERNA_INVALID_ARGUMENT);
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t which = (i + sterna_rank()) % 2;
    EXPECT(sterna_session_open(in_order[which], names[which]) == STERNA_SUCCESS);
  }
  const int values[3] = {(int)sterna_rank(), 100 + (int)sterna_rank(), 200 + (int)sterna_rank()};
  EXPECT(sterna_session_send(&second, to, 50, &values[2], sizeof(int)) == STERNA_SUCCESS);
  EXPECT(sterna_message_send(to, 50, &values[0], sizeof(int)) == STERNA_SUCCESS);
  meet();
  EXPECT(sterna_session_probe(&first, from, 50, &found, &envelope) == STERNA_SUCCESS && found == 0);
  meet(); /* Nobody sends there before all have looked. */
  wander();
  EXPECT(sterna_session_send(&first, to, 50, &values[1], sizeof(int)) == STERNA_SUCCESS);
  /* From whom it may, with any tag: each finds its own. */
  EXPECT(sterna_session_receive(&first, STERNA_ANY_RANK, STERNA_ANY_TAG, &value, sizeof value,
                                &envelope) == STERNA_SUCCESS);
  EXPECT(value == 100 + (int)from && envelope.source == from && envelope.tag == 50);
  EXPECT(sterna_message_receive(STERNA_ANY_RANK, STERNA_ANY_TAG, &value, sizeof value, NULL) ==
         STERNA_SUCCESS);
  EXPECT(value == (int)from);
  EXPECT(sterna_session_open(&again, "mesh") == STERNA_SUCCESS);
  EXPECT(sterna_message_receive_init(&request, from, 50, &value, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_session(&request, &again) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS);
  EXPECT(sterna_session_close(&again) == STERNA_BUSY && detail_has("'mesh'"));
  EXPECT(sterna_message_wait(&request, NULL) == STERNA_TRUNCATED && detail_has("'mesh'"));
  EXPECT(sterna_session_send(&first, sterna_rank_count(), 0, NULL, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(detail_has("'solver'"));
  EXPECT(sterna_session_close(&again) == STERNA_SUCCESS);
  EXPECT(sterna_session_close(&again) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_set_session(&request, &again) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_close(&first) == STERNA_SUCCESS);
  EXPECT(sterna_session_close(&second) == STERNA_SUCCESS);
}

int main(void) {
  sterna_session session;
  const int is_mobile = sterna_node_count() != 1 || sterna_rank_count() != 1;
  EXPECT(is_mobile || sterna_session_open(&session, "early") == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  test_masks();
  test_matched();
  test_sessions();
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
