/* Probes that wait, and probes with masks: what they find, in which order, how they end; who waits
 * or tests in a loop leaves its worker to others. As one rank with one worker, several, and mobile
 * ranks that move meanwhile. */
#include "ring.h"
#include "sterna/control.h"
#include "sterna/pack.h"
#include "sterna/session.h"
#include "sterna/thread.h"

enum { kLarge = 400000, kYieldsMax = 10000000 };
static const uint64_t kShort = 1000000; /* Nanoseconds that may pass in vain. */

/* The mask finds the oldest that fits, in its session; what a matched probe takes nobody finds. */
static void test_masks(void) {
  static const int32_t tags[5] = {0x222, 0x111, 0x112, 0x333, 0x121};
  sterna_session session;
  sterna_matched_message* message = NULL;
  sterna_matched_message* second = NULL;
  sterna_envelope envelope = {99, 99, 99};
  int got = -1;
  EXPECT(sterna_session_open(&session, "probed") == STERNA_SUCCESS);
  for (int i = 0; i < 5; ++i) {
    EXPECT(sterna_session_send(&session, to, tags[i], &i, sizeof i) == STERNA_SUCCESS);
  }
  meet();
  wander();
  EXPECT(sterna_message_probe_for(from, 0x100, 0xf00, 0, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_matched_probe_for(from, 0x100, 0xf00, kShort, &message, NULL) ==
         STERNA_TIMED_OUT);
  EXPECT(message == NULL && detail_has("sterna_message_matched_probe_for"));
  EXPECT(sterna_session_probe_for(&session, from, 0x100, 0xf00, 0, &envelope) == STERNA_SUCCESS);
  EXPECT(envelope.source == from && envelope.tag == 0x111 && envelope.bytes == sizeof(int));
  EXPECT(sterna_session_probe_for(&session, from, 0x730, 0x0f0, STERNA_FOREVER, &envelope) ==
         STERNA_SUCCESS);
  EXPECT(envelope.tag == 0x333);
  EXPECT(sterna_session_probe_for(&session, from, 1, 0, kShort, &envelope) == STERNA_SUCCESS);
  EXPECT(envelope.tag == 0x222); /* No bit counts: the oldest. */
  EXPECT(sterna_session_probe_for(&session, from, 0x112, STERNA_WHOLE_TAG, 0, &envelope) ==
         STERNA_SUCCESS);
  EXPECT(envelope.tag == 0x112);
  EXPECT(sterna_session_probe_for(&session, from, 0x113, STERNA_WHOLE_TAG, kShort, NULL) ==
         STERNA_TIMED_OUT);
  EXPECT(sterna_session_probe_for(&session, from, 0x400, 0xf00, kShort, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_session_matched_probe_for(&session, STERNA_ANY_RANK, 0x100, 0xf00, STERNA_FOREVER,
                                          &message, &envelope) == STERNA_SUCCESS);
  EXPECT(message != NULL && envelope.tag == 0x111);
  EXPECT(sterna_session_matched_probe_for(&session, from, 0x100, 0xf00, STERNA_FOREVER, &second,
                                          &envelope) == STERNA_SUCCESS);
  EXPECT(second != NULL && envelope.tag == 0x112);
  wander();
  EXPECT(sterna_message_receive_matched(message, &got, sizeof got, NULL) == STERNA_SUCCESS);
  EXPECT(got == 1);
  EXPECT(sterna_message_receive_matched(second, &got, sizeof got, NULL) == STERNA_SUCCESS);
  EXPECT(got == 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_session_receive(&session, from, STERNA_ANY_TAG, &got, sizeof got, NULL) ==
           STERNA_SUCCESS);
    EXPECT(got == (i == 0 ? 0 : i + 2));
  }
  EXPECT(sterna_session_probe_for(&session, STERNA_ANY_RANK, STERNA_ANY_TAG, STERNA_WHOLE_TAG, 0,
                                  NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_session_close(&session) == STERNA_SUCCESS);
}

/* Each waits for what the one before it sends when it has waited itself; long ones, too. */
static void test_waits(void) {
  char* const sent = malloc(kLarge);
  char* const got = malloc(kLarge);
  EXPECT(sent != NULL && got != NULL);
  memset(sent, 'p', kLarge);
  for (int round = 0; round < 4; ++round) {
    const size_t bytes = round % 2 == 0 ? 3 : kLarge;
    sterna_message_request out;
    sterna_matched_message* message = NULL;
    sterna_envelope envelope = {99, 99, 99};
    const uint32_t source = round < 2 ? from : STERNA_ANY_RANK;
    if (sterna_rank() == 0) {
      EXPECT(sterna_message_send_start(&out, to, 60, sent, bytes) == STERNA_SUCCESS);
      wander();
    }
    EXPECT(sterna_message_probe_for(source, 60, STERNA_WHOLE_TAG, STERNA_FOREVER, &envelope) ==
           STERNA_SUCCESS);
    EXPECT(envelope.source == from && envelope.tag == 60 && envelope.bytes == bytes);
    EXPECT(sterna_message_matched_probe_for(source, STERNA_ANY_TAG, STERNA_WHOLE_TAG,
                                            STERNA_FOREVER, &message,
                                            &envelope) == STERNA_SUCCESS);
    EXPECT(message != NULL && envelope.bytes == bytes);
    if (sterna_rank() != 0) {
      EXPECT(sterna_message_send_start(&out, to, 60, sent, bytes) == STERNA_SUCCESS);
    }
    memset(got, 0, bytes);
    EXPECT(sterna_message_receive_matched(message, got, kLarge, NULL) == STERNA_SUCCESS);
    EXPECT(got[0] == 'p' && got[bytes - 1] == 'p');
    EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
    meet();
  }
  free(got);
  free(sent);
}

/* A pack that was found by a mask is taken by its envelope. */
static void test_packs(void) {
  sterna_packing packing;
  sterna_unpacking unpacking;
  sterna_envelope envelope = {99, 99, 99};
  int value = 0;
  for (int i = 0; i < 2; ++i) {
    const int32_t tag = 0x51 + 0x11 * i;
    EXPECT(sterna_pack_begin(&packing, NULL, to, tag) == STERNA_SUCCESS);
    EXPECT(sterna_pack_int(&packing, &tag, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
  }
  EXPECT(sterna_unpack_probe_for(NULL, from, 0x02, 0x0f, STERNA_FOREVER, &envelope) ==
         STERNA_SUCCESS);
  EXPECT(envelope.source == from && envelope.tag == 0x62);
  EXPECT(sterna_unpack_probe_for(NULL, from, 0x03, 0x0f, kShort, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_unpack_probe_for(NULL, from, STERNA_ANY_TAG, STERNA_WHOLE_TAG, 0, &envelope) ==
         STERNA_SUCCESS);
  EXPECT(envelope.tag == 0x51);
  EXPECT(sterna_message_probe_for(from, 0x62, STERNA_WHOLE_TAG, 0, NULL) == STERNA_TIMED_OUT);
  for (int32_t tag = 0x62; tag >= 0x51; tag -= 0x11) {
    EXPECT(sterna_unpack_begin(&unpacking, NULL, from, tag, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_unpack_int(&unpacking, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    EXPECT(value == tag && sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
  }
}

static int has_called; /* Atomic. */

static void probe_inside(void* argument, sterna_message_request* request, sterna_status status,
                         const sterna_envelope* envelope) {
  sterna_matched_message* message = NULL;
  (void)argument, (void)request, (void)status, (void)envelope;
  EXPECT(sterna_message_probe_for(from, 90, STERNA_WHOLE_TAG, STERNA_FOREVER, NULL) ==
         STERNA_DEADLOCK);
  EXPECT(detail_has("callback"));
  EXPECT(sterna_message_matched_probe_for(from, 90, STERNA_WHOLE_TAG, 1, &message, NULL) ==
         STERNA_DEADLOCK);
  EXPECT(sterna_unpack_probe_for(NULL, from, 90, STERNA_WHOLE_TAG, 1, NULL) == STERNA_DEADLOCK);
  EXPECT(sterna_message_probe_for(from, 90, STERNA_WHOLE_TAG, 0, NULL) == STERNA_TIMED_OUT);
  __atomic_store_n(&has_called, 1, __ATOMIC_RELEASE);
}

static void test_misuse(void) {
  sterna_session session;
  sterna_message_request in;
  memset(&session, 0, sizeof session);
  EXPECT(sterna_message_probe_for(sterna_rank_count(), 0, STERNA_WHOLE_TAG, 0, NULL) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_probe_for(from, -2, STERNA_WHOLE_TAG, 0, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_probe_for(from, STERNA_ANY_TAG, 1, 0, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(detail_has("mask"));
  EXPECT(sterna_message_matched_probe_for(from, 0, STERNA_WHOLE_TAG, 0, NULL, NULL) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_unpack_probe_for(NULL, from, STERNA_ANY_TAG, 1, 0, NULL) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_unpack_probe_for(&session, from, 0, STERNA_WHOLE_TAG, 0, NULL) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_probe_for(&session, from, 0, STERNA_WHOLE_TAG, 0, NULL) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_receive_init(&in, from, 91, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&in, probe_inside, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&in) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&in) == STERNA_SUCCESS);
  while (__atomic_load_n(&has_called, __ATOMIC_ACQUIRE) == 0) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
  }
}

/* --- In programs with one worker. */

static void wait_by_probe(void* argument) {
  sterna_envelope envelope = {99, 99, 99};
  (void)argument;
  EXPECT(sterna_message_probe_for(STERNA_ANY_RANK, 70, STERNA_WHOLE_TAG, STERNA_FOREVER,
                                  &envelope) == STERNA_SUCCESS);
  EXPECT(envelope.source == sterna_rank() && envelope.tag == 70);
  EXPECT(sterna_message_receive(envelope.source, 70, NULL, 0, NULL) == STERNA_SUCCESS);
}

static sterna_thread_state state_of(const sterna_thread* thread) {
  sterna_thread_info infos[16];
  size_t count = 0;
  EXPECT(sterna_thread_list(infos, 16, &count) == STERNA_SUCCESS);
  for (size_t i = 0; i < count && i < 16; ++i) {
    if (infos[i].thread == thread) {
      return infos[i].state;
    }
  }
  return STERNA_THREAD_FROZEN;
}

/* Sends when the one that waits is seen to sleep, not only to have let this one go first. */
static void send_to_sleeper(void* argument) {
  int yields = 0;
  while (state_of(argument) != STERNA_THREAD_BLOCKED) {
    EXPECT(++yields < kYieldsMax);
    sterna_thread_yield();
  }
  EXPECT(sterna_message_send(sterna_rank(), 70, NULL, 0) == STERNA_SUCCESS);
}

static void probe_in_loop(void* argument) {
  (void)argument;
  for (int found = 0; found == 0;) {
    EXPECT(sterna_message_probe(sterna_rank(), 71, &found, NULL) == STERNA_SUCCESS);
  }
  EXPECT(sterna_message_receive(sterna_rank(), 71, NULL, 0, NULL) == STERNA_SUCCESS);
}

static void look_in_loop(void* argument) {
  sterna_status status = STERNA_TIMED_OUT;
  (void)argument;
  while (status == STERNA_TIMED_OUT) {
    status = sterna_message_probe_for(sterna_rank(), 72, STERNA_WHOLE_TAG, 0, NULL);
  }
  EXPECT(status == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(sterna_rank(), 72, NULL, 0, NULL) == STERNA_SUCCESS);
}

static void test_in_loop(void* argument) {
  sterna_message_request in;
  (void)argument;
  EXPECT(sterna_message_receive_start(&in, sterna_rank(), 73, NULL, 0) == STERNA_SUCCESS);
  for (int done = 0; done == 0;) {
    EXPECT(sterna_message_test(&in, &done, NULL) == STERNA_SUCCESS);
  }
}

static void send_to_loops(void* argument) {
  (void)argument;
  for (int32_t tag = 71; tag <= 73; ++tag) {
    EXPECT(sterna_message_send(sterna_rank(), tag, NULL, 0) == STERNA_SUCCESS);
  }
}

static void test_one_worker(void) {
  sterna_thread* threads[4];
  EXPECT(sterna_worker_count() == 1);
  EXPECT(sterna_thread_create(NULL, wait_by_probe, NULL, &threads[0]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(NULL, send_to_sleeper, threads[0], &threads[1]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[1]) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[0]) == STERNA_SUCCESS);
  /* Without a switch in vain, whoever comes first would never end. */
  void (*const loops[4])(void*) = {probe_in_loop, look_in_loop, test_in_loop, send_to_loops};
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_create(NULL, loops[i], NULL, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  const int is_mobile = sterna_worker_count() == 0 && sterna_rank_count() != 1;
  EXPECT(is_mobile || sterna_message_probe_for(0, 0, STERNA_WHOLE_TAG, 0, NULL) ==
                          STERNA_NOT_STARTED);
  options.workers = 1;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  join_ring();
  test_masks();
  test_waits();
  test_packs();
  test_misuse();
  if (sterna_worker_count() != 0) {
    test_one_worker();
  }
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
