/* Mobile ranks: moves, messages between ranks that move, memory, loads, and what is not for them.
 * Run by `sterna run --nodes`. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "sterna/balance.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/io.h"
#include "sterna/key.h"
#include "sterna/memory.h"
#include "sterna/message.h"
#include "sterna/migrate.h"
#include "sterna/rpc.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kRounds = 24, kLarge = 300000 };

static int steps; /* A global of the rank: it moves with it. */

static void nothing(void* argument) { (void)argument; }

static sterna_status no_service(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  return STERNA_SUCCESS;
}

static void test_unsupported(void) {
  sterna_thread* thread = NULL;
  sterna_bubble* bubble = NULL;
  sterna_key key = 0;
  EXPECT(sterna_thread_create(NULL, nothing, NULL, &thread) == STERNA_UNSUPPORTED);
  EXPECT(sterna_thread_exit() == STERNA_UNSUPPORTED);
  EXPECT(sterna_bubble_create(&bubble) == STERNA_UNSUPPORTED);
  EXPECT(sterna_key_create(&key, NULL) == STERNA_UNSUPPORTED);
  EXPECT(sterna_key_set(0, &key) == STERNA_UNSUPPORTED);
  EXPECT(sterna_rpc_register("service", STERNA_RPC_QUICK, no_service, NULL) == STERNA_UNSUPPORTED);
  EXPECT(sterna_rpc_post(0, "service", NULL, 0) == STERNA_UNSUPPORTED);
}

static void test_moves(void) {
  sterna_load before = {sizeof before, 0, 0}, after = {sizeof after, 0, 0};
  char* const block = sterna_iso_alloc(kLarge);
  const char* const place = block;
  EXPECT(block != NULL && sterna_is_iso(block) && sterna_is_iso(&before) && sterna_is_iso(&steps));
  memset(block, 'x', kLarge);
  EXPECT(sterna_load_query(&before) == STERNA_SUCCESS);
  for (uint32_t i = 1; i <= 2 * sterna_node_count(); ++i) {
    const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
    EXPECT(sterna_migrate_to(node) == STERNA_SUCCESS);
    EXPECT(sterna_node_index() == node);
    EXPECT(block == place && block[kLarge - 1] == 'x');
    block[kLarge - 1] = 'x';
    ++steps;
  }
  EXPECT(sterna_migrate_to(sterna_node_index()) == STERNA_SUCCESS);
  EXPECT(sterna_migrate_to(sterna_node_count()) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_load_query(&after) == STERNA_SUCCESS);
  EXPECT(steps == (int)(2 * sterna_node_count()));
  EXPECT(after.moves == before.moves + (uint64_t)steps);
  EXPECT(after.processor_ns >= before.processor_ns);
  EXPECT(sterna_load_query(NULL) == STERNA_INVALID_ARGUMENT);
  sterna_iso_free(block);
}

/* What holds a rank has a name, and goes with its reason. */
static void test_blockers(void) {
  char reason[64] = "";
  char brief[5] = "";
  EXPECT(sterna_migratable(reason, sizeof reason) == STERNA_SUCCESS && reason[0] == '\0');
  FILE* const file = fopen("/proc/self/status", "r");
  EXPECT(file != NULL);
  EXPECT(sterna_migratable(reason, sizeof reason) == STERNA_REFUSED);
  EXPECT(strstr(reason, "/proc/self/status") != NULL);
  EXPECT(sterna_migratable(brief, sizeof brief) == STERNA_REFUSED);
  EXPECT(strlen(brief) == sizeof brief - 1 && strncmp(brief, reason, sizeof brief - 1) == 0);
  EXPECT(sterna_migratable(NULL, 0) == STERNA_REFUSED);
  const uint32_t here = sterna_node_index();
  EXPECT(sterna_migrate_to((here + 1) % sterna_node_count()) == STERNA_REFUSED);
  EXPECT(sterna_node_index() == here);
  EXPECT(fclose(file) == 0);
  /* Its own word, for as long as it stands. */
  EXPECT(sterna_set_migratable(0) == STERNA_SUCCESS);
  EXPECT(sterna_migratable(reason, sizeof reason) == STERNA_REFUSED && reason[0] != '\0');
  EXPECT(sterna_migrate_to((here + 1) % sterna_node_count()) == STERNA_REFUSED);
  EXPECT(sterna_node_index() == here);
  EXPECT(sterna_set_migratable(1) == STERNA_SUCCESS);
  /* What was refused once is not held against it. */
  EXPECT(sterna_migratable(reason, sizeof reason) == STERNA_SUCCESS);
  EXPECT(sterna_migrate_to((here + 1) % sterna_node_count()) == STERNA_SUCCESS);
}

/* What a call of io.h fails with is in the errno of the rank. */
static void test_io(void) {
  char byte = 0;
  errno = 0;
  EXPECT(sterna_read(9999, &byte, 1) == -1 && *sterna_errno() == EBADF);
  EXPECT(sterna_open("/no/such/file", O_RDONLY, 0) == -1 && *sterna_errno() == ENOENT);
  /* What it opens there holds it as what it opens itself. */
  char reason[64] = "";
  const int file = sterna_open("/proc/self/status", O_RDONLY, 0);
  EXPECT(file > 2 && sterna_migratable(reason, sizeof reason) == STERNA_REFUSED);
  EXPECT(strstr(reason, "/proc/self/status") != NULL);
  EXPECT(sterna_read(file, &byte, 1) == 1 && close(file) == 0);
  EXPECT(sterna_migratable(reason, sizeof reason) == STERNA_SUCCESS);
  sterna_semaphore* named = NULL; /* Memory of a process, which the rank may leave. */
  EXPECT(sterna_semaphore_open("named", STERNA_SEMAPHORE_CREATE, 1, &named) == STERNA_UNSUPPORTED);
  EXPECT(sterna_semaphore_unlink("named") == STERNA_UNSUPPORTED);
}

/* A mutex that one worker uses alone gets cheaper by that worker's means: they stay behind when the
 * rank moves, with the mutex held or not. */
static void test_mutex_that_moves(void) {
  static sterna_mutex mutex = STERNA_MUTEX_INIT;
  for (uint32_t round = 0; round < 8; ++round) {
    for (int i = 0; i < 1500; ++i) {
      EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
      EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
    }
    EXPECT(round % 2 == 0 || sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    EXPECT(sterna_migrate_to((sterna_node_index() + 1) % sterna_node_count()) == STERNA_SUCCESS);
    EXPECT(round % 2 == 0 || sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  }
}

/* Small and large messages along a ring, while every rank moves between any two of them. */
static void test_messages(void) {
  const uint32_t to = (sterna_rank() + 1) % sterna_rank_count();
  const uint32_t from = (sterna_rank() + sterna_rank_count() - 1) % sterna_rank_count();
  unsigned char* const out = malloc(kLarge);
  unsigned char* const in = malloc(kLarge);
  EXPECT(out != NULL && in != NULL);
  for (int round = 0; round < kRounds; ++round) {
    const size_t bytes = round % 3 == 0 ? kLarge : 16;
    sterna_envelope envelope = {0, 0, 0};
    memset(out, (int)sterna_rank() + round, bytes);
    /* Even ranks send first: a large message is not sent before it is received. */
    const int sends_first = sterna_rank() % 2 == 0;
    if (sends_first) {
      EXPECT(sterna_message_send(to, round, out, bytes) == STERNA_SUCCESS);
    }
    EXPECT(sterna_message_receive(from, STERNA_ANY_TAG, in, kLarge, &envelope) == STERNA_SUCCESS);
    EXPECT(envelope.source == from && envelope.tag == round && envelope.bytes == bytes);
    EXPECT(in[0] == (unsigned char)(from + (uint32_t)round) && in[bytes - 1] == in[0]);
    if (!sends_first) {
      EXPECT(sterna_message_send(to, round, out, bytes) == STERNA_SUCCESS);
    }
    EXPECT(sterna_migrate_to((uint32_t)(round + (int)sterna_rank()) % sterna_node_count()) ==
           STERNA_SUCCESS);
    EXPECT(sterna_balance_point() == STERNA_SUCCESS);
    EXPECT(sterna_migration_point() == STERNA_SUCCESS);
  }
  free(in);
  free(out);
}

/* Calls that are under way while the rank moves: the answers follow it. */
static void test_answers_that_follow(void) {
  enum { kCalls = 8 };
  sterna_load_call* calls[kCalls];
  for (int round = 0; round < kRounds; ++round) {
    for (uint32_t i = 0; i < kCalls; ++i) {
      EXPECT(sterna_node_load_start(i % sterna_node_count(), &calls[i]) == STERNA_SUCCESS);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
      EXPECT(sterna_migrate_to(node) == STERNA_SUCCESS);
    }
    for (uint32_t i = 0; i < kCalls; ++i) {
      sterna_node_load load = {sizeof load, ~0U, 0, 0};
      EXPECT(sterna_node_load_wait(calls[i], &load) == STERNA_SUCCESS);
      EXPECT(load.workers > 0 && load.processor_ns > 0 && load.ranks <= sterna_rank_count());
    }
    EXPECT(sterna_migrate_to((sterna_node_index() + 1) % sterna_node_count()) == STERNA_SUCCESS);
  }
  sterna_node_load load = {sizeof load, 0, 0, 0};
  EXPECT(sterna_node_load_query(sterna_node_index(), &load) == STERNA_SUCCESS && load.ranks > 0);
  EXPECT(sterna_node_load_query(sterna_node_count(), &load) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_node_load_query(0, NULL) == STERNA_INVALID_ARGUMENT);
  load.size_bytes = 0;
  EXPECT(sterna_node_load_query(0, &load) == STERNA_INVALID_ARGUMENT);
}

static void test_locks(void) {
  static sterna_mutex mutex = STERNA_MUTEX_INIT;
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
  EXPECT(sterna_migrate_to((sterna_node_index() + 1) % sterna_node_count()) == STERNA_SUCCESS);
  EXPECT(sterna_mutex_lock(&mutex) == STERNA_DEADLOCK); /* It is still the holder. */
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_rank() < sterna_rank_count() && sterna_node_count() > 1);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_unsupported();
  test_moves();
  test_blockers();
  test_io();
  test_mutex_that_moves();
  test_messages();
  test_answers_that_follow();
  test_locks();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
