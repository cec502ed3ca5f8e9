/* Packing and unpacking: every mode means what it says, with short and long pieces; mistakes are
 * told. As one rank, several, and mobile ranks that move meanwhile; with the setting pack_checks and
 * without, and, with a file as argument, in a job where one node has it and the others have not. */
#include "sterna/pack.h"

#include "pack_checks.h"
#include "sterna/thread.h"

enum { kLong = 300000 };

/* Of a piece `bytes` long: changed as the mode allows, before and after the end begins. */
static void test_modes_of(size_t bytes) {
  unsigned char* const safer = malloc(bytes);
  unsigned char* const later = malloc(bytes);
  unsigned char* const cheaper = malloc(bytes);
  unsigned char* const got = malloc(3 * bytes);
  sterna_packing packing;
  sterna_unpacking unpacking;
  sterna_envelope envelope = {99, 99, 99};
  EXPECT(safer != NULL && later != NULL && cheaper != NULL && got != NULL);
  for (int express = 0; express < 2; ++express) {
    const sterna_unpack_mode mode = express ? STERNA_UNPACK_EXPRESS : STERNA_UNPACK_CHEAPER;
    memset(safer, 's', bytes);
    memset(later, '?', bytes);
    memset(cheaper, 'c', bytes);
    memset(got, 0, 3 * bytes);
    EXPECT(sterna_pack_begin(&packing, NULL, to, 3) == STERNA_SUCCESS);
    EXPECT(sterna_pack(&packing, safer, bytes, STERNA_PACK_SAFER, mode) == STERNA_SUCCESS);
    memset(safer, 'x', bytes); /* At once. */
    EXPECT(sterna_pack(&packing, later, bytes, STERNA_PACK_LATER, mode) == STERNA_SUCCESS);
    EXPECT(sterna_pack(&packing, cheaper, bytes, STERNA_PACK_CHEAPER, mode) == STERNA_SUCCESS);
    memset(later, 'l', bytes); /* Until the end begins. */
    wander();
    EXPECT(sterna_pack_start_end(&packing) == STERNA_SUCCESS);
    EXPECT(sterna_pack(&packing, later, 1, STERNA_PACK_SAFER, mode) == STERNA_REFUSED);
    EXPECT(sterna_pack_cancel(&packing) == STERNA_REFUSED);
    wander();
    EXPECT(sterna_unpack_begin(&unpacking, NULL, STERNA_ANY_RANK, STERNA_ANY_TAG, &envelope) ==
           STERNA_SUCCESS);
    EXPECT(envelope.source == from && envelope.tag == 3);
    const sterna_pack_mode modes[3] = {STERNA_PACK_SAFER, STERNA_PACK_LATER, STERNA_PACK_CHEAPER};
    for (int i = 0; i < 3; ++i) {
      EXPECT(sterna_unpack(&unpacking, got + (size_t)i * bytes, bytes, modes[i], mode) ==
             STERNA_SUCCESS);
      EXPECT(!express ||
             (got[(size_t)i * bytes] == "slc"[i] && got[((size_t)i + 1) * bytes - 1] == "slc"[i]));
    }
    wander();
    EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
    for (size_t i = 0; i < 3 * bytes; ++i) {
      EXPECT(got[i] == "slc"[i / bytes]);
    }
    if (express) {
      EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
    } else {
      for (int done = 0; done == 0;) {
        EXPECT(sterna_pack_test_end(&packing, &done) == STERNA_SUCCESS);
      }
    }
    EXPECT(sterna_pack_end(&packing) == STERNA_REFUSED); /* It has ended. */
  }
  free(got);
  free(cheaper);
  free(later);
  free(safer);
}

/* An express piece says how long the next one is; more short pieces than one block takes, between
 * long ones; several messages under way at a time, also from one sender with one tag. */
static void test_what_follows(void) {
  enum { kMessages = 4, kShorts = 3000 };
  static int shorts[kMessages][kShorts];
  static double doubles[kMessages][kLong / sizeof(double)];
  sterna_packing packings[kMessages];
  for (int m = 0; m < kMessages; ++m) {
    const int count = kShorts - m;
    EXPECT(sterna_pack_begin(&packings[m], NULL, to, 4) == STERNA_SUCCESS);
    EXPECT(sterna_pack_int(&packings[m], &count, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    for (int i = 0; i < count; ++i) {
      shorts[m][i] = -1;
      EXPECT(sterna_pack_int(&packings[m], &shorts[m][i], 1,
                             i % 2 == 0 ? STERNA_PACK_LATER : STERNA_PACK_SAFER,
                             STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
      shorts[m][i] = i + m;
      if (i % 1000 == 500) {
        const size_t values = sizeof doubles[m] / sizeof(double) / (size_t)(i / 1000 + 1);
        for (size_t j = 0; j < values; ++j) {
          doubles[m][j] = (double)m;
        }
        EXPECT(sterna_pack_double(&packings[m], doubles[m], values, STERNA_PACK_CHEAPER,
                                  i > 1000 ? STERNA_UNPACK_CHEAPER : STERNA_UNPACK_EXPRESS) ==
               STERNA_SUCCESS);
      }
    }
  }
  for (int m = 0; m < kMessages; ++m) {
    EXPECT(sterna_pack_start_end(&packings[m]) == STERNA_SUCCESS);
    wander();
  }
  for (int m = 0; m < kMessages; m += 2) { /* Two at a time, in turns. */
    static double got[2][3][kLong / sizeof(double)];
    static int values[2][kShorts];
    sterna_unpacking unpackings[2];
    int count[2] = {0, 0};
    memset(got, 0, sizeof got);
    for (int k = 0; k < 2; ++k) {
      EXPECT(sterna_unpack_begin(&unpackings[k], NULL, from, 4, NULL) == STERNA_SUCCESS);
    }
    for (int k = 1; k >= 0; --k) {
      EXPECT(sterna_unpack_int(&unpackings[k], &count[k], 1, STERNA_PACK_SAFER,
                               STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
      EXPECT(count[k] == kShorts - m - k);
    }
    for (int i = 0; i < kShorts; ++i) {
      for (int k = 1; k >= 0; --k) {
        if (i >= count[k]) {
          continue;
        }
        EXPECT(sterna_unpack_int(&unpackings[k], &values[k][i], 1,
                                 i % 2 == 0 ? STERNA_PACK_LATER : STERNA_PACK_SAFER,
                                 STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
        if (i % 1000 == 500) {
          const size_t size = sizeof doubles[m] / sizeof(double) / (size_t)(i / 1000 + 1);
          EXPECT(sterna_unpack_double(&unpackings[k], got[k][i / 1000], size, STERNA_PACK_CHEAPER,
                                      i > 1000 ? STERNA_UNPACK_CHEAPER : STERNA_UNPACK_EXPRESS) ==
                 STERNA_SUCCESS);
          EXPECT(i > 1000 || got[k][0][size - 1] == (double)(m + k));
        }
      }
    }
    for (int k = 0; k < 2; ++k) {
      EXPECT(sterna_unpack_end(&unpackings[k]) == STERNA_SUCCESS);
      for (int i = 0; i < count[k]; ++i) {
        EXPECT(values[k][i] == (i % 2 == 0 ? i + m + k : -1));
      }
      for (int j = 0; j < 3; ++j) {
        const size_t size = sizeof doubles[m] / sizeof(double) / (size_t)(j + 1);
        EXPECT((m + k == 0 || got[k][j][0] == (double)(m + k)) &&
               got[k][j][size - 1] == (double)(m + k));
      }
    }
  }
  for (int m = 0; m < kMessages; ++m) {
    EXPECT(sterna_pack_end(&packings[m]) == STERNA_SUCCESS);
  }
}

/* Both sides do not agree: an error on the receiver's side, and the next message is whole. */
static void test_mistakes(void) {
  static char large[kLong], got[kLong];
  sterna_packing packing;
  sterna_unpacking unpacking;
  sterna_session session;
  int value = 7, read = 0, found = 0;
  memset(&packing, 0, sizeof packing);
  memset(&unpacking, 0, sizeof unpacking);
  EXPECT(sterna_pack_begin(&packing, NULL, sterna_rank_count(), 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_pack_begin(NULL, NULL, 0, 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_pack(&packing, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(sterna_unpack(&unpacking, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(sterna_session_open(&session, "packs") == STERNA_SUCCESS);
  EXPECT(sterna_pack_begin(&packing, &session, to, 6) == STERNA_SUCCESS);
  EXPECT(sterna_pack(&packing, NULL, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_pack(&packing, &value, sizeof value, (sterna_pack_mode)9, STERNA_UNPACK_EXPRESS) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_session_close(&session) == STERNA_BUSY);
  EXPECT(sterna_pack_cancel(&packing) == STERNA_SUCCESS);
  for (int round = 0; round < 4; ++round) {
    EXPECT(sterna_pack_begin(&packing, &session, to, 6) == STERNA_SUCCESS);
    EXPECT(sterna_pack_int(&packing, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    EXPECT(round == 3 || sterna_pack(&packing, large, kLong, STERNA_PACK_CHEAPER,
                                     STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
    EXPECT(sterna_pack_start_end(&packing) == STERNA_SUCCESS);
    for (found = 0; found == 0;) {
      EXPECT(sterna_unpack_probe(&session, from, 6, &found, NULL) == STERNA_SUCCESS);
    }
    EXPECT(sterna_unpack_probe(NULL, STERNA_ANY_RANK, 6, &found, NULL) == STERNA_SUCCESS);
    EXPECT(found == 0); /* Not in this session. */
    EXPECT(sterna_unpack_begin(&unpacking, &session, from, 6, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_unpack_int(&unpacking, &read, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    EXPECT(read == 7);
    if (round == 0) { /* Less is unpacked. */
      EXPECT(sterna_unpack_end(&unpacking) == STERNA_TRUNCATED);
    } else if (round < 3 && gets_checked) { /* Another piece, twice: it is still there. */
      EXPECT(sterna_unpack(&unpacking, got, kLong / 2, STERNA_PACK_CHEAPER,
                           STERNA_UNPACK_CHEAPER) == STERNA_REFUSED);
      EXPECT(sterna_unpack(&unpacking, got, kLong, STERNA_PACK_CHEAPER, STERNA_UNPACK_EXPRESS) ==
             STERNA_REFUSED);
      EXPECT(round == 1 || sterna_unpack(&unpacking, got, kLong, STERNA_PACK_CHEAPER,
                                         STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
      EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS); /* It was told. */
    } else if (round == 1) { /* A shorter piece, then one too many. */
      EXPECT(sterna_unpack(&unpacking, got, kLong / 2, STERNA_PACK_CHEAPER,
                           STERNA_UNPACK_EXPRESS) == STERNA_TRUNCATED);
      EXPECT(sterna_unpack(&unpacking, got, kLong, STERNA_PACK_CHEAPER, STERNA_UNPACK_CHEAPER) ==
             STERNA_REFUSED);
      EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS); /* Both were told. */
    } else if (round == 2) { /* A longer piece, which is seen at the end. */
      char* const longer = malloc(kLong + 1);
      EXPECT(longer != NULL);
      EXPECT(sterna_unpack(&unpacking, longer, kLong + 1, STERNA_PACK_CHEAPER,
                           STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
      EXPECT(sterna_unpack_end(&unpacking) == STERNA_REFUSED);
      EXPECT(detail_has("'packs'"));
      free(longer);
    } else { /* More short ones than there are. */
      EXPECT(sterna_unpack_int(&unpacking, &read, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
             STERNA_REFUSED);
      EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
    }
    EXPECT(sterna_unpack_end(&unpacking) == STERNA_REFUSED); /* It has ended. */
    EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
  }
  EXPECT(sterna_session_close(&session) == STERNA_SUCCESS);
}

/* Texts of any length, with their lengths; one for which there is no room is taken afterwards. */
static void test_strings(void) {
  static char text[kLong], got[kLong];
  static const size_t lengths[] = {0, 1, 511, 4095, 5000, kLong - 1};
  sterna_packing packing;
  sterna_unpacking unpacking;
  size_t length = 99;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    memset(text, 'a' + (int)i, lengths[i]);
    text[lengths[i]] = '\0';
    memset(got, 'x', sizeof got);
    EXPECT(sterna_pack_begin(&packing, NULL, to, 7) == STERNA_SUCCESS);
    EXPECT(sterna_pack_string(&packing, NULL, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
           STERNA_INVALID_ARGUMENT);
    EXPECT(sterna_pack_string(&packing, text, STERNA_PACK_CHEAPER, STERNA_UNPACK_EXPRESS) ==
           STERNA_SUCCESS);
    EXPECT(sterna_pack_string(&packing, text, STERNA_PACK_CHEAPER, STERNA_UNPACK_CHEAPER) ==
           STERNA_SUCCESS);
    EXPECT(sterna_pack_start_end(&packing) == STERNA_SUCCESS);
    EXPECT(sterna_unpack_begin(&unpacking, NULL, from, 7, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_unpack_string(&unpacking, got, sizeof got, &length, STERNA_PACK_CHEAPER,
                                STERNA_UNPACK_EXPRESS) == STERNA_SUCCESS);
    EXPECT(length == lengths[i] && strlen(got) == length && strcmp(got, text) == 0);
    EXPECT(sterna_unpack_string(&unpacking, got, lengths[i], &length, STERNA_PACK_CHEAPER,
                                STERNA_UNPACK_CHEAPER) == STERNA_TRUNCATED);
    EXPECT(length == lengths[i]);
    memset(got, 'y', sizeof got);
    EXPECT(sterna_unpack(&unpacking, got, length + 1, STERNA_PACK_CHEAPER,
                         STERNA_UNPACK_CHEAPER) == STERNA_SUCCESS);
    EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
    EXPECT(strcmp(got, text) == 0);
    EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
  }
}

static void test_all(void* argument) {
  (void)argument;
  static const size_t sizes[] = {1, 512, 513, 4096, 4097, kLong};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    test_modes_of(sizes[i]);
  }
  test_what_follows();
  test_strings();
  test_mistakes();
}

int main(int argc, char** argv) {
  sterna_thread* thread = NULL;
  if (argc > 1) {
    choose_who_checks(argv[1]);
  }
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  learn_of_checks();
  test_all(NULL);
  if (sterna_worker_count() != 0) {
    EXPECT(sterna_thread_create(NULL, test_all, NULL, &thread) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
