/* How the end of a request is told: by a callback, or in a queue. As one rank, several, and mobile
 * ranks that move meanwhile. */
#include "ring.h"
#include "sterna/rpc.h"
#include "sterna/tasklet.h"
#include "sterna/thread.h"

enum { kMany = 100 };

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

static sterna_message_request first_request;
static int first_ended; /* Atomic, as the next. */
static int first_polled;

static uint32_t poll_once(void* argument) {
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELEASE);
  return 1;
}

/* Inside the poll that has found the request, before anybody has set a callback or added a task:
 * neither waits for the poll to end. */
static sterna_status first_of_all(void* context, sterna_rpc_request* request) {
  static sterna_poll_task task;
  (void)context, (void)request;
  EXPECT(sterna_message_receive_init(&first_request, from, 29, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_message_set_callback(&first_request, on_cancelled, &first_ended) == STERNA_SUCCESS);
  EXPECT(sterna_message_start(&first_request) == STERNA_SUCCESS);
  EXPECT(sterna_message_cancel(&first_request) == STERNA_SUCCESS);
  EXPECT(sterna_poll_task_init(&task, poll_once, &first_polled, STERNA_POLL_ANY, 0) ==
         STERNA_SUCCESS);
  EXPECT(sterna_poll_task_add(&task) == STERNA_SUCCESS);
  return STERNA_SUCCESS;
}

static void test_first_inside_a_poll(void) {
  const uint32_t node = (sterna_node_index() + 1) % sterna_node_count();
  EXPECT(sterna_rpc_call_for(node, "first of all", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_SUCCESS);
  await(&first_ended, 1);
  await(&first_polled, 1);
}

int main(void) {
  const int is_mobile = sterna_node_count() != 1 || sterna_rank_count() != 1;
  EXPECT(is_mobile || sterna_rpc_register("first of all", STERNA_RPC_QUICK, first_of_all, NULL) ==
                          STERNA_SUCCESS);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  if (sterna_worker_count() != 0) {
    test_first_inside_a_poll();
  }
  test_callbacks();
  test_queue();
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
