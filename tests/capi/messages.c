/* Requests: started, waited for, tested, cancelled, several at once, again; pieces, masks, matched
 * probes, callbacks, queues, sessions. As one rank, several, and mobile ranks that move meanwhile.
 */
#include <string.h>

#include "expect.h"
#include "sterna/message.h"
#include "sterna/migrate.h"
#include "sterna/session.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

enum { kLarge = 400000, kMany = 100 };

static uint32_t to, from; /* The neighbours in a ring; of one rank: itself. */
static char detail[240];

/* A mobile rank goes elsewhere, with all that is under way. */
static void wander(void) {
  if (sterna_worker_count() == 0) {
    EXPECT(sterna_migrate_to((sterna_node_index() + 1) % sterna_node_count()) == STERNA_SUCCESS);
  }
}

static int detail_has(const char* word) {
  EXPECT(sterna_error_detail(detail, sizeof detail) == STERNA_SUCCESS);
  return strstr(detail, word) != NULL;
}

/* Nothing that follows begins before all ranks are here: once around the ring. */
static void meet(void) {
  for (int round = 0; round < (int)sterna_rank_count(); ++round) {
    sterna_message_request request;
    EXPECT(sterna_message_send_start(&request, to, 1000 + round, NULL, 0) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive(from, 1000 + round, NULL, 0, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_message_wait(&request, NULL) == STERNA_SUCCESS);
  }
}

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

/* Small and large ones in both directions at once, waited for in every way. */
static void test_requests(void) {
  sterna_message_request out[4], in[4];
  sterna_message_request* all[9] = {&in[0],  &in[1],  &in[2],  &in[3], NULL,
                                    &out[0], &out[1], &out[2], &out[3]};
  unsigned char* const sent = malloc(4 * kLarge);
  unsigned char* const received = malloc(4 * kLarge);
  EXPECT(sent != NULL && received != NULL);
  const size_t sizes[4] = {0, 1, 5000, kLarge};
  for (int round = 0; round < 12; ++round) {
    int ended[9] = {0};
    memset(sent, (int)sterna_rank() + round, 4 * kLarge);
    memset(received, 0xee, 4 * kLarge);
    for (int i = 0; i < 4; ++i) {
      EXPECT(sterna_message_receive_start(&in[i], round % 2 == 0 ? from : STERNA_ANY_RANK, i,
                                          received + i * kLarge, kLarge) == STERNA_SUCCESS);
    }
    wander();
    for (int i = 3; i >= 0; --i) {
      EXPECT(sterna_message_send_init(&out[i], to, i, sent + i * kLarge, sizes[i]) ==
             STERNA_SUCCESS);
      EXPECT(sterna_message_set_mode(&out[i], round % 3 == 0 ? STERNA_SEND_SYNCHRONOUS
                                              : round % 3 == 1
                                                  ? STERNA_SEND_READY
                                                  : STERNA_SEND_STANDARD) == STERNA_SUCCESS);
      EXPECT(sterna_message_start(&out[i]) == STERNA_SUCCESS);
    }
    for (int left = 8; round % 2 == 0 && left != 0; --left) {
      size_t index = 99;
      sterna_envelope envelope = {99, 99, 99};
      EXPECT(sterna_message_wait_any(all, 9, STERNA_FOREVER, &index, &envelope) == STERNA_SUCCESS);
      EXPECT(index < 9 && index != 4 && ended[index]++ == 0);
      EXPECT(index > 4 || (envelope.source == from && envelope.tag == (int)index &&
                           envelope.bytes == sizes[index]));
    }
    if (round % 4 == 1) {
      EXPECT(sterna_message_wait_all(all, 9, STERNA_FOREVER) == STERNA_SUCCESS);
    } else if (round % 4 == 3) {
      for (int i = 0; i < 4; ++i) {
        sterna_envelope envelope;
        int done = 0;
        while (done == 0) {
          EXPECT(sterna_message_test(&in[i], &done, &envelope) == STERNA_SUCCESS);
        }
        EXPECT(envelope.source == from && envelope.tag == i && envelope.bytes == sizes[i]);
        EXPECT(sterna_message_wait(&out[i], NULL) == STERNA_SUCCESS);
      }
    }
    size_t index;
    EXPECT(sterna_message_wait_any(all, 9, 0, &index, NULL) == STERNA_NOT_FOUND);
    EXPECT(sterna_message_wait_all(all, 9, 0) == STERNA_SUCCESS);
    for (int i = 0; i < 4; ++i) {
      const unsigned char* const place = received + i * kLarge;
      EXPECT(sizes[i] == 0 || (place[0] == (unsigned char)(from + (uint32_t)round) &&
                               place[sizes[i] - 1] == place[0]));
      EXPECT(sizes[i] == kLarge || place[sizes[i]] == 0xee);
    }
  }
  free(received);
  free(sent);
}

/* Described once, started many times; more of them than one wait keeps on its stack. */
static void test_persistent(void) {
  static sterna_message_request requests[2 * kMany];
  static sterna_message_request* all[2 * kMany];
  static int out[kMany], in[kMany];
  for (int i = 0; i < kMany; ++i) {
    all[i] = &requests[i];
    all[kMany + i] = &requests[kMany + i];
    EXPECT(sterna_message_receive_init(&requests[i], from, i, &in[i], sizeof(int)) ==
           STERNA_SUCCESS);
    EXPECT(sterna_message_send_init(&requests[kMany + i], to, i, &out[i], sizeof(int)) ==
           STERNA_SUCCESS);
  }
  for (int round = 0; round < 5; ++round) {
    size_t index;
    for (int i = 0; i < kMany; ++i) {
      out[i] = round * 1000 + i;
      EXPECT(sterna_message_start(all[i]) == STERNA_SUCCESS);
    }
    EXPECT(sterna_message_wait_any(all, kMany, 1000, &index, NULL) == STERNA_TIMED_OUT ||
           sterna_rank_count() > 1);
    for (int i = 0; i < kMany; ++i) {
      EXPECT(sterna_message_start(all[kMany + i]) == STERNA_SUCCESS);
    }
    for (int i = 0; i < 2 * kMany && round % 2 == 0; ++i) {
      const sterna_status status =
          sterna_message_wait_any(all, 2 * kMany, STERNA_FOREVER, &index, NULL);
      /* One may have ended above. */
      EXPECT(status == STERNA_SUCCESS || (status == STERNA_NOT_FOUND && i == 2 * kMany - 1));
    }
    EXPECT(sterna_message_wait_all(all, 2 * kMany, STERNA_FOREVER) == STERNA_SUCCESS);
    for (int i = 0; i < kMany; ++i) {
      EXPECT(in[i] == round * 1000 + i);
    }
  }
}

/* A synchronous send goes on until its receive begins; a message that is too long is cut. */
static void test_modes_and_lengths(void) {
  sterna_message_request out, in;
  sterna_envelope envelope;
  char bytes[4] = "abc", got[4] = "";
  meet();
  EXPECT(sterna_message_send_init(&out, to, 5, bytes, 4) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_mode(&out, STERNA_SEND_SYNCHRONOUS) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&out) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait_for(&out, 2000000, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_cancel(&out) == STERNA_REFUSED);
  meet(); /* Nobody receives before all have looked. */
  wander();
  EXPECT(sterna_message_receive_start(&in, from, 5, got, 2) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, &envelope) == STERNA_TRUNCATED);
  EXPECT(detail_has("has 4 bytes, its buffer 2"));
  EXPECT(envelope.bytes == 2 && memcmp(got, "ab", 3) == 0);
  EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
}

struct triangle {
  int* matrix;
  size_t rows;
};

/* Row i has i + 1 elements. */
static int next_row(const void* layout, size_t index, sterna_piece* piece) {
  const struct triangle* const of = layout;
  if (index == of->rows) {
    return 0;
  }
  piece->address = of->matrix + index * of->rows;
  piece->bytes = (index + 1) * sizeof(int);
  return 1;
}

static int next_of_none(const void* layout, size_t index, sterna_piece* piece) {
  (void)layout, (void)index, (void)piece;
  return 0;
}

static void exchange(sterna_message_request* out, sterna_message_request* in,
                     sterna_envelope* envelope, sterna_status wanted) {
  EXPECT(sterna_message_start(in) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(out) == STERNA_SUCCESS);
  wander();
  EXPECT(sterna_message_wait(in, envelope) == wanted);
  EXPECT(sterna_message_wait(out, NULL) == STERNA_SUCCESS);
}

/* `rows` of them: few go as they are, many by a copy; messages of all sizes. */
static void test_pieces_of(size_t rows) {
  const size_t elements = rows * (rows + 1) / 2;
  int* const matrix = calloc(rows * rows, sizeof(int));
  int* const line = calloc(elements, sizeof(int));
  sterna_piece* const pieces = calloc(rows, sizeof(sterna_piece));
  sterna_message_request out, in;
  sterna_envelope envelope;
  EXPECT(matrix != NULL && line != NULL && pieces != NULL);
  const struct triangle layout = {matrix, rows};
  for (size_t i = 0; i < rows; ++i) {
    pieces[i] = (sterna_piece){matrix + i * rows, (i + 1) * sizeof(int)};
  }
  for (int by_layout = 0; by_layout < 2; ++by_layout) {
    /* A triangle goes out, a line comes in; then the line goes, and comes as a triangle. */
    for (size_t i = 0; i < rows * rows; ++i) {
      matrix[i] = (int)i;
    }
    EXPECT(sterna_message_send_init(&out, to, 1, NULL, 0) == STERNA_SUCCESS);
    EXPECT((by_layout ? sterna_message_set_layout(&out, next_row, &layout)
                      : sterna_message_set_pieces(&out, pieces, rows)) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive_init(&in, from, 1, line, elements * sizeof(int)) ==
           STERNA_SUCCESS);
    exchange(&out, &in, &envelope, STERNA_SUCCESS);
    EXPECT(envelope.bytes == elements * sizeof(int));
    const int* at = line;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        EXPECT(*at++ == (int)(i * rows + j));
      }
    }
    memset(matrix, 0xff, rows * rows * sizeof(int));
    EXPECT(sterna_message_send_init(&out, to, 1, line, elements * sizeof(int)) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive_init(&in, from, 1, NULL, 0) == STERNA_SUCCESS);
    EXPECT((by_layout ? sterna_message_set_layout(&in, next_row, &layout)
                      : sterna_message_set_pieces(&in, pieces, rows)) == STERNA_SUCCESS);
    exchange(&out, &in, &envelope, STERNA_SUCCESS);
    for (size_t i = 0; i < rows * rows; ++i) {
      EXPECT(matrix[i] == (i % rows <= i / rows ? (int)i : -1));
    }
  }
  /* A shorter message fills the first pieces, a longer one is cut: nothing else is written. */
  memset(matrix, 0xff, rows * rows * sizeof(int));
  EXPECT(sterna_message_send_init(&out, to, 1, line, 2 * sizeof(int)) == STERNA_SUCCESS);
  exchange(&out, &in, &envelope, STERNA_SUCCESS);
  EXPECT(envelope.bytes == 2 * sizeof(int) && matrix[rows] == (int)rows && matrix[rows + 1] == -1);
  EXPECT(sterna_message_set_pieces(&in, pieces, rows - 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_send_init(&out, to, 1, line, elements * sizeof(int)) == STERNA_SUCCESS);
  exchange(&out, &in, &envelope, STERNA_TRUNCATED);
  EXPECT(envelope.bytes == (elements - rows) * sizeof(int));
  EXPECT(matrix[rows * (rows - 1)] == -1 && matrix[rows * (rows - 1) - 2] != -1);
  free(pieces);
  free(line);
  free(matrix);
}

static void test_pieces(void) {
  sterna_message_request out, in;
  sterna_envelope envelope;
  int columns[6][4], row[6];
  for (int i = 0; i < 24; ++i) {
    columns[i / 4][i % 4] = i;
  }
  test_pieces_of(5);
  test_pieces_of(40);
  test_pieces_of(400);
  /* A column, from the last element to the first. */
  EXPECT(sterna_message_send_init(&out, to, 2, &columns[5][1], 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_strided(&out, sizeof(int), 6, -(ptrdiff_t)sizeof columns[0]) ==
         STERNA_SUCCESS);
  EXPECT(sterna_message_receive_init(&in, from, 2, row, sizeof row) == STERNA_SUCCESS);
  exchange(&out, &in, &envelope, STERNA_SUCCESS);
  for (int i = 0; i < 6; ++i) {
    EXPECT(row[i] == 4 * (5 - i) + 1);
  }
  EXPECT(sterna_message_set_layout(&out, next_of_none, NULL) == STERNA_SUCCESS);
  exchange(&out, &in, &envelope, STERNA_SUCCESS);
  EXPECT(envelope.bytes == 0);
  const sterna_piece bad = {NULL, 4};
  EXPECT(sterna_message_set_pieces(&out, &bad, 1) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&out) == STERNA_INVALID_ARGUMENT && detail_has("no address"));
}

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

struct ball {
  sterna_message_request in, out;
  int value, hops, wanted;
  int ended; /* By the callback; read by others. */
};

/* Sends on what has come, and waits for the next: all of it without a thread. */
static void on_ball(void* argument, sterna_message_request* request, sterna_status status,
                    const sterna_envelope* envelope) {
  struct ball* const ball = argument;
  EXPECT(request == &ball->in && status == STERNA_SUCCESS);
  EXPECT(envelope->source == from && envelope->bytes == sizeof(int));
  EXPECT(ball->value == ball->hops);
  if (++ball->hops == ball->wanted) {
    __atomic_store_n(&ball->ended, 1, __ATOMIC_RELEASE);
    return;
  }
  int done = 0;
  sterna_message_request never;
  EXPECT(sterna_message_receive_start(&never, from, 999, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&never, NULL) == STERNA_DEADLOCK);
  EXPECT(sterna_message_test(&never, &done, NULL) == STERNA_SUCCESS && done == 0);
  EXPECT(sterna_message_cancel(&never) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&never, NULL) == STERNA_CANCELLED);
  EXPECT(sterna_message_start(&ball->in) == STERNA_SUCCESS);
  EXPECT(sterna_message_send_start(&ball->out, to, 30, &ball->hops, sizeof(int)) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&ball->out, NULL) == STERNA_SUCCESS); /* Short: it has ended. */
}

static void on_cancelled(void* argument, sterna_message_request* request, sterna_status status,
                         const sterna_envelope* envelope) {
  (void)request, (void)envelope;
  EXPECT(status == STERNA_CANCELLED);
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELEASE);
}

static void on_sent(void* argument, sterna_message_request* request, sterna_status status,
                    const sterna_envelope* envelope) {
  (void)request;
  EXPECT(status == STERNA_SUCCESS && envelope == NULL);
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELEASE);
}

static void await(const int* word, int wanted) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < wanted) {
    EXPECT(sterna_message_call_back() == STERNA_SUCCESS);
  }
}

static void test_callbacks(void) {
  static struct ball ball;
  static int cancelled, sent;
  sterna_message_request request;
  int zero = 0, done = 0;
  ball.wanted = 50;
  EXPECT(sterna_message_receive_init(&ball.in, from, 30, &ball.value, sizeof(int)) ==
         STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&ball.in, on_ball, &ball) == STERNA_SUCCESS);
  EXPECT(sterna_message_send_init(&request, to, 30, &zero, sizeof zero) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&request, on_sent, &sent) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS); /* Before the callback sends more. */
  EXPECT(sterna_message_start(&ball.in) == STERNA_SUCCESS);
  EXPECT(sterna_message_test(&request, &done, NULL) == STERNA_REFUSED && detail_has("callback"));
  wander();
  await(&sent, 1);
  await(&ball.ended, 1);
  EXPECT(ball.hops == 50);
  EXPECT(sterna_message_receive_init(&request, from, 31, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&request, on_cancelled, &cancelled) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&request) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&request) == STERNA_SUCCESS);
  await(&cancelled, 1);
  meet();
  /* Those that come while the rank waits for something else. */
  static sterna_message_request many[kMany];
  EXPECT(sterna_message_send_start(&request, to, 33, NULL, 0) == STERNA_SUCCESS);
  for (int i = 0; i < kMany; ++i) {
    EXPECT(sterna_message_receive_init(&many[i], from, 32, NULL, 0) == STERNA_SUCCESS);
    EXPECT(sterna_message_set_callback(&many[i], on_cancelled, &cancelled) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&many[i]) == STERNA_SUCCESS);
    EXPECT(sterna_message_cancel(&many[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_message_receive(from, 33, NULL, 0, NULL) == STERNA_SUCCESS);
  await(&cancelled, 1 + kMany);
  EXPECT(sterna_message_wait(&request, NULL) == STERNA_SUCCESS);
}

static sterna_message_queue queue = STERNA_MESSAGE_QUEUE_INIT;
enum { kTaken = 200 };
static int taken; /* By all threads. */

/* Until an end comes, or, without an argument, until all have been taken. */
static void take_until_end(void* is_for_end) {
  while (is_for_end != NULL || __atomic_load_n(&taken, __ATOMIC_RELAXED) < kTaken) {
    sterna_message_request* request = NULL;
    sterna_status ended = STERNA_SYSTEM;
    sterna_envelope envelope;
    EXPECT(sterna_message_queue_take(&queue, STERNA_FOREVER, &request, &ended, &envelope) ==
           STERNA_SUCCESS);
    EXPECT(ended == STERNA_SUCCESS);
    if (envelope.tag == 41) {
      EXPECT(is_for_end != NULL);
      return;
    }
    EXPECT(envelope.tag == 40 && envelope.source == from);
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    EXPECT(sterna_message_start(request) == STERNA_SUCCESS);
  }
}

static void test_queue(void) {
  enum { kThreads = 3, kReceives = 8 };
  static sterna_message_request receives[kReceives], ends[kThreads];
  static int values[kReceives];
  sterna_message_request* request = NULL;
  EXPECT(sterna_message_queue_take(&queue, 0, &request, NULL, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_queue_take(&queue, 1000000, &request, NULL, NULL) == STERNA_TIMED_OUT);
  EXPECT(sterna_message_queue_take(NULL, 0, &request, NULL, NULL) == STERNA_INVALID_ARGUMENT);
  for (int i = 0; i < kReceives; ++i) {
    EXPECT(sterna_message_receive_init(&receives[i], from, 40, &values[i], sizeof(int)) ==
           STERNA_SUCCESS);
    EXPECT(sterna_message_set_queue(&receives[i], &queue) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&receives[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_message_wait(&receives[0], NULL) == STERNA_REFUSED && detail_has("queue"));
  const int has_threads = sterna_worker_count() != 0;
  const int takers = has_threads ? kThreads : 1;
  sterna_thread* threads[kThreads];
  for (int i = 0; i < takers; ++i) {
    EXPECT(sterna_message_receive_init(&ends[i], from, 41, NULL, 0) == STERNA_SUCCESS);
    EXPECT(sterna_message_set_queue(&ends[i], &queue) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&ends[i]) == STERNA_SUCCESS);
    EXPECT(!has_threads ||
           sterna_thread_create(NULL, take_until_end, &queue, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kTaken; ++i) {
    EXPECT(sterna_message_send(to, 40, &i, sizeof i) == STERNA_SUCCESS);
    if (i % 50 == 0) {
      wander();
    }
  }
  for (int i = 0; i < takers; ++i) {
    EXPECT(sterna_message_send(to, 41, NULL, 0) == STERNA_SUCCESS);
  }
  for (int i = 0; i < takers; ++i) {
    if (has_threads) {
      EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
    } else {
      take_until_end(&queue);
    }
  }
  /* An end has a receive of its own, and overtakes what waits for one that is free. */
  take_until_end(NULL);
  EXPECT(taken == kTaken);
  for (int i = 0; i < kReceives; ++i) {
    EXPECT(sterna_message_cancel(&receives[i]) == STERNA_SUCCESS);
    sterna_status ended = STERNA_SUCCESS;
    EXPECT(sterna_message_queue_take(&queue, STERNA_FOREVER, &request, &ended, NULL) ==
           STERNA_SUCCESS);
    EXPECT(request == &receives[i] && ended == STERNA_CANCELLED);
  }
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

static void test_on_a_thread(void* argument) {
  (void)argument;
  test_requests();
  test_persistent();
  test_pieces();
}

int main(void) {
  sterna_message_request request;
  sterna_session session;
  const int is_mobile = sterna_node_count() != 1 || sterna_rank_count() != 1;
  EXPECT(is_mobile || sterna_message_send_init(&request, 0, 0, NULL, 0) == STERNA_NOT_STARTED);
  EXPECT(is_mobile || sterna_session_open(&session, "early") == STERNA_NOT_STARTED);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  to = (sterna_rank() + 1) % sterna_rank_count();
  from = (sterna_rank() + sterna_rank_count() - 1) % sterna_rank_count();
  test_misuse();
  test_requests();
  test_persistent();
  test_modes_and_lengths();
  test_pieces();
  test_masks();
  test_matched();
  test_callbacks();
  test_queue();
  test_sessions();
  if (sterna_worker_count() != 0) {
    sterna_thread* thread = NULL;
    EXPECT(sterna_thread_create(NULL, test_on_a_thread, NULL, &thread) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
