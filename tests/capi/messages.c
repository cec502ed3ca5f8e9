/* Requests: started, waited for, tested, cancelled, several at once, again; their modes and pieces.
 * As one rank, several, and mobile ranks that move meanwhile. */
#include "ring.h"
#include "sterna/thread.h"

enum { kLarge = 400000, kMany = 100 };

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
  meet(); /* Nobody receives before all have looked. */
  wander();
  EXPECT(sterna_message_receive_start(&in, from, 5, got, 2) == STERNA_SUCCESS);
  EXPECT(sterna_message_wait(&in, &envelope) == STERNA_TRUNCATED);
  EXPECT(detail_has("has 4 bytes, its buffer 2"));
  EXPECT(envelope.bytes == 2 && memcmp(got, "ab", 3) == 0);
  EXPECT(sterna_message_wait(&out, NULL) == STERNA_SUCCESS);
}

/* What waits for its receive is taken back, also on its way, and leaves nothing: short and
 * synchronous, or long. What has been received is not. */
static void test_cancelled_sends(void) {
  sterna_message_request out[3], in;
  char* const bytes = calloc(2, kLarge);
  EXPECT(bytes != NULL);
  for (int round = 0; round < 6; ++round) {
    const size_t size = round % 2 == 0 ? 4 : kLarge;
    sterna_envelope envelope;
    for (int i = 0; i < 3; ++i) {
      bytes[0] = (char)('a' + i);
      EXPECT(sterna_message_send_init(&out[i], to, 6, bytes, size) == STERNA_SUCCESS);
      EXPECT(sterna_message_set_mode(&out[i], STERNA_SEND_SYNCHRONOUS) == STERNA_SUCCESS);
      EXPECT(i == 1 || sterna_message_start(&out[i]) == STERNA_SUCCESS);
      EXPECT(i != 0 || sterna_message_cancel(&out[i]) == STERNA_SUCCESS);
      EXPECT(i != 0 || sterna_message_wait(&out[i], NULL) == STERNA_CANCELLED);
      EXPECT(i == 2 || sterna_message_cancel(&out[i]) == STERNA_REFUSED); /* Not started. */
      wander();
    }
    meet(); /* Nobody receives before all have taken back. */
    EXPECT(sterna_message_receive_start(&in, from, 6, bytes + kLarge, kLarge) == STERNA_SUCCESS);
    EXPECT(sterna_message_wait(&in, &envelope) == STERNA_SUCCESS);
    EXPECT(envelope.bytes == size && bytes[kLarge] == 'c');
    meet(); /* Both ranks have received. */
    const sterna_status late = sterna_message_cancel(&out[2]);
    EXPECT(late == STERNA_REFUSED || late == STERNA_SUCCESS); /* Or it does not know yet. */
    EXPECT(sterna_message_wait(&out[2], NULL) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&out[0]) == STERNA_SUCCESS); /* Again. */
    EXPECT(sterna_message_cancel(&out[0]) == STERNA_SUCCESS);
    const int is_waited = sterna_message_wait_for(&out[0], 1, NULL) == STERNA_TIMED_OUT;
    EXPECT(!is_waited || sterna_message_wait(&out[0], NULL) == STERNA_CANCELLED);
    meet();
  }
  EXPECT(sterna_message_send_start(&out[0], to, 6, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_receive(from, 6, NULL, 0, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&out[0]) == STERNA_REFUSED && detail_has("has gone"));
  EXPECT(sterna_message_wait(&out[0], NULL) == STERNA_SUCCESS);
  free(bytes);
}

/* Of every priority at once, short and long: all come, those of one tag in their order. */
static void test_priorities(void) {
  enum { kTags = 4, kEach = 20, kBytes = 30000 };
  static sterna_message_request out[kTags * kEach], in[kTags * kEach];
  static sterna_message_request* all[2 * kTags * kEach];
  static char sent[kBytes], got[kTags * kEach][kBytes];
  static int number[kTags * kEach];
  EXPECT(sterna_message_receive_init(&in[0], from, 0, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_priority(&in[0], 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_message_send_init(&out[0], to, 0, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_priority(&out[0], STERNA_MESSAGE_PRIORITY_MAX + 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(detail_has("priority 8"));
  for (int i = 0; i < kTags * kEach; ++i) {
    const int tag = 10 + i % kTags;
    number[i] = i;
    sterna_piece pieces[2] = {{&number[i], sizeof(int)}, {sent, i % 3 == 0 ? kBytes - 4 : 10}};
    all[2 * i] = &out[i];
    all[2 * i + 1] = &in[i];
    EXPECT(sterna_message_send_init(&out[i], to, tag, NULL, 0) == STERNA_SUCCESS);
    EXPECT(sterna_message_set_pieces(&out[i], pieces, 2) == STERNA_SUCCESS);
    EXPECT(sterna_message_set_priority(&out[i], (uint32_t)(i * 7 % 8)) == STERNA_SUCCESS);
    EXPECT(sterna_message_start(&out[i]) == STERNA_SUCCESS);
    EXPECT(sterna_message_receive_start(&in[i], from, tag, got[i], kBytes) == STERNA_SUCCESS);
  }
  wander();
  EXPECT(sterna_message_wait_all(all, 2 * kTags * kEach, STERNA_FOREVER) == STERNA_SUCCESS);
  for (int i = 0; i < kTags * kEach; ++i) {
    int came = -1;
    memcpy(&came, got[i], sizeof came);
    EXPECT(came == i);
  }
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

static int is_going_on;

static void goes_on(void* argument) {
  (void)argument;
  while (__atomic_load_n(&is_going_on, __ATOMIC_ACQUIRE)) {
    sterna_thread_yield();
  }
}

/* Who waits for his message has his processor for himself or not: it goes another way then. */
static void test_awaited(int is_alone) {
  static const size_t sizes[] = {9000, 65536, 65537, kLarge};
  unsigned char* const sent = malloc(kLarge);
  unsigned char* const received = malloc(kLarge);
  sterna_thread* other = NULL;
  EXPECT(sent != NULL && received != NULL);
  __atomic_store_n(&is_going_on, 1, __ATOMIC_RELEASE);
  if (!is_alone) {
    EXPECT(sterna_thread_create(NULL, goes_on, NULL, &other) == STERNA_SUCCESS);
  }
  for (int round = 0; round < 20; ++round) {
    const size_t bytes = sizes[round % 4];
    sterna_message_request in;
    memset(sent, (int)sterna_rank() + round, bytes);
    memset(received, 0xee, bytes);
    EXPECT(sterna_message_receive_start(&in, from, 3, received, kLarge) == STERNA_SUCCESS);
    EXPECT(sterna_message_send(to, 3, sent, bytes) == STERNA_SUCCESS);
    EXPECT(sterna_message_wait(&in, NULL) == STERNA_SUCCESS);
    const unsigned char expected = (unsigned char)(from + (uint32_t)round);
    for (size_t i = 0; i < bytes; i += bytes / 7) {
      EXPECT(received[i] == expected);
    }
    EXPECT(received[bytes - 1] == expected);
  }
  __atomic_store_n(&is_going_on, 0, __ATOMIC_RELEASE);
  if (other != NULL) {
    EXPECT(sterna_thread_join(other) == STERNA_SUCCESS);
  }
  free(received);
  free(sent);
}

static void test_on_a_thread(void* argument) {
  (void)argument;
  test_awaited(1);
  test_awaited(0);
  test_requests();
  test_persistent();
  test_cancelled_sends();
  test_pieces();
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  test_requests();
  test_persistent();
  test_modes_and_lengths();
  test_cancelled_sends();
  test_priorities();
  test_pieces();
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
