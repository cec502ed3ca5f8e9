/* Calls against messages between two nodes, in turn: prints "message.BYTES US", "call.BYTES US" (a
 * quick service that gives back what it gets), "post.BYTES US" (one-way calls to and fro),
 * "thread.BYTES US" (a service in a thread), all one way; and "message_one.BYTES US",
 * "call_one.BYTES US": there and an empty answer back, into memory that waits for it. Medians of
 * many short batches. What is measured in turn is named: after long echoes what goes one way takes
 * up to three times as long for some milliseconds, be it messages or calls. By a thread; with -m by
 * main(), and then main() of the other node waits for it.
 *
 * usage: rpc [-m] BATCHES KIND[,KIND...] BYTES...
 */
#include "sterna/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sterna/message.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"
#include "timing.h"

static char *out, *in;
static int batches, size_count;
static char** sizes;
static int bytes, count; /* Of a batch. */

static void check(sterna_status status, const char* what) {
  if (status != STERNA_SUCCESS) {
    fprintf(stderr, "rpc: %s: %s\n", what, sterna_status_text(status));
    exit(1);
  }
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static sterna_status echo(void* context, sterna_rpc_request* request) {
  size_t length = 0;
  const void* const arguments = sterna_rpc_arguments(request, &length);
  (void)context;
  return sterna_rpc_reply(request, arguments, length);
}

/* The argument goes where a message would. */
static sterna_status take(void* context, sterna_rpc_request* request) {
  uint64_t length = 0;
  (void)context;
  check(sterna_rpc_unpack(request, &length, sizeof length, STERNA_UNPACK_EXPRESS), "unpack");
  return sterna_rpc_unpack(request, in, length, STERNA_UNPACK_EXPRESS);
}

static int balls; /* Of posts that are still to go to and fro. */
static sterna_thread* waiting;

static sterna_status ball(void* context, sterna_rpc_request* request) {
  size_t length = 0;
  const void* const arguments = sterna_rpc_arguments(request, &length);
  (void)context;
  if (sterna_node_index() == 0) {
    if (__atomic_sub_fetch(&balls, 1, __ATOMIC_ACQ_REL) == 0) {
      return sterna_thread_unpark(waiting);
    }
  }
  return sterna_rpc_post(1 - sterna_node_index(), "ball", arguments, length);
}

static void answer_messages(int there, int back) {
  for (int i = 0; i < count; ++i) {
    check(sterna_message_receive(0, 1, in, (size_t)there, NULL), "receive");
    check(sterna_message_send(0, 1, out, (size_t)back), "send");
  }
}

static void ask_messages(int there, int back) {
  for (int i = 0; i < count; ++i) {
    check(sterna_message_send(1, 1, out, (size_t)there), "send");
    check(sterna_message_receive(1, 1, in, (size_t)back, NULL), "receive");
  }
}

static void call(const char* service) {
  for (int i = 0; i < count; ++i) {
    check(sterna_rpc_call_for(1, service, out, (size_t)bytes, in, (size_t)bytes, NULL,
                              STERNA_FOREVER),
          service);
  }
}

static void call_one(void) {
  const uint64_t length = (uint64_t)bytes;
  for (int i = 0; i < count; ++i) {
    sterna_rpc_packing packing;
    check(sterna_rpc_begin(&packing, "take", NULL), "begin");
    check(sterna_rpc_pack(&packing, &length, sizeof length, STERNA_PACK_SAFER), "pack");
    check(sterna_rpc_pack(&packing, out, (size_t)bytes, STERNA_PACK_CHEAPER), "pack");
    check(sterna_rpc_call_packed(&packing, 1, NULL, 0, NULL), "call");
  }
}

static void post(void) {
  __atomic_store_n(&balls, count, __ATOMIC_RELEASE);
  check(sterna_rpc_post(1, "ball", out, (size_t)bytes), "post");
  while (__atomic_load_n(&balls, __ATOMIC_ACQUIRE) != 0) {
    check(sterna_thread_park(STERNA_FOREVER), "park");
  }
}

enum { kMessage, kCall, kPost, kThread, kMessageOne, kCallOne, kKinds };
static const char* const kNames[] = {"message", "call",        "post",
                                     "thread",  "message_one", "call_one"};

static void run_once(int kind) {
  switch (kind) {
    case kMessage:
      ask_messages(bytes, bytes);
      break;
    case kCall:
      call("echo");
      break;
    case kPost:
      post();
      break;
    case kThread:
      call("thread echo");
      break;
    case kMessageOne:
      ask_messages(bytes, 0);
      break;
    case kCallOne:
      call_one();
      break;
  }
}

static int measured[kKinds];

/* Whether `list` has names of kinds only. */
static int choose(char* list) {
  for (char* name = strtok(list, ","); name != NULL; name = strtok(NULL, ",")) {
    int kind = 0;
    while (kind < kKinds && strcmp(name, kNames[kind]) != 0) {
      ++kind;
    }
    if (kind == kKinds) {
      fprintf(stderr, "rpc: no kind '%s'\n", name);
      return 0;
    }
    measured[kind] = 1;
  }
  return 1;
}

/* Both nodes go through the same batches; node 1 takes part in those of messages. It says when it
 * has done with the one before, which is no part of this one. */
static double run_batch(int kind) {
  if (sterna_node_index() == 1) {
    check(sterna_message_send(0, 2, NULL, 0), "turn");
    if (kind == kMessage) {
      answer_messages(bytes, bytes);
    }
    if (kind == kMessageOne) {
      answer_messages(bytes, 0);
    }
    check(sterna_message_receive(0, 2, NULL, 0, NULL), "turn");
    return 0;
  }
  check(sterna_message_receive(1, 2, NULL, 0, NULL), "turn");
  const double begin = now_us();
  run_once(kind);
  const double us = (now_us() - begin) / count / (kind < kMessageOne ? 2 : 1);
  check(sterna_message_send(1, 2, NULL, 0), "turn");
  return us;
}

/* A batch finds the memory of the network as the one before has left it, so that one of its own
 * kind goes before each. */
static void run(void* argument) {
  double* const times = malloc(sizeof(double) * kKinds * (size_t)batches);
  (void)argument;
  waiting = sterna_thread_self();
  for (int i = 0; i < size_count; ++i) {
    bytes = atoi(sizes[i]);
    count = bytes <= 4096 ? 100 : bytes <= 262144 ? 20 : 5;
    for (int batch = 0; batch < batches; ++batch) {
      for (int kind = 0; kind < kKinds; ++kind) {
        if (measured[kind]) {
          (void)run_batch(kind);
          times[kind * batches + batch] = run_batch(kind);
        }
      }
    }
    for (int kind = 0; kind < kKinds && sterna_node_index() == 0; ++kind) {
      if (measured[kind]) {
        printf("%s.%d %.4f\n", kNames[kind], bytes, median(times + kind * batches, batches));
      }
    }
  }
  free(times);
}

static void run_in_thread(void) {
  sterna_thread* thread = NULL;
  check(sterna_thread_create(NULL, run, NULL, &thread), "thread");
  check(sterna_thread_join(thread), "join");
}

int main(int argc, char** argv) {
  int bytes_max = 1;
  const int is_main = argc > 1 && strcmp(argv[1], "-m") == 0;
  argc -= is_main;
  argv += is_main;
  batches = argc > 1 ? atoi(argv[1]) : 0;
  if (argc < 4 || batches < 1 || !choose(argv[2])) {
    fprintf(stderr, "usage: rpc [-m] BATCHES KIND[,KIND...] BYTES...\n");
    return 2;
  }
  sizes = argv + 3;
  size_count = argc - 3;
  for (int i = 0; i < size_count; ++i) {
    if (atoi(sizes[i]) > bytes_max) {
      bytes_max = atoi(sizes[i]);
    }
  }
  out = malloc((size_t)bytes_max);
  in = malloc((size_t)bytes_max);
  if (out == NULL || in == NULL) {
    return 1;
  }
  memset(out, 1, (size_t)bytes_max);
  memset(in, 1, (size_t)bytes_max);
  sterna_rpc_service_options taking = STERNA_RPC_SERVICE_OPTIONS_DEFAULT;
  taking.unpacks = 1;
  check(sterna_rpc_register("echo", STERNA_RPC_QUICK, echo, NULL), "echo");
  check(sterna_rpc_register("thread echo", STERNA_RPC_THREAD, echo, NULL), "thread echo");
  check(sterna_rpc_register("ball", STERNA_RPC_QUICK, ball, NULL), "ball");
  check(sterna_rpc_register_with("take", &taking, take, NULL), "take");
  check(sterna_start(NULL), "start");
  if (sterna_node_count() != 2 || (is_main && measured[kPost])) {
    fprintf(stderr, "rpc: two nodes, and posts to and fro by a thread\n");
    return 2;
  }
  if (is_main) {
    run(NULL);
  } else {
    run_in_thread();
  }
  check(sterna_stop(), "stop");
  return 0;
}
