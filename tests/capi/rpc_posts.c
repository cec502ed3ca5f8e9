/* Calls without reply, posted faster than they are served: who posts waits, in threads; quick
 * services never do. Nodes flood each other from services and all come to their end; what is not
 * served yet fills neither the memory of its sender nor that of its receiver. Alone and in jobs.
 * rpc_posts lost: rank 1, to which others wait to post, is killed (--on-loss go_on). */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../resident.h"
#include "rpc.h"
#include "sterna/control.h"
#include "sterna/job_barrier.h"
#include "sterna/message.h"
#include "sterna/thread.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIMES 4 /* Of each page that is touched there is a shadow, and more around each block. */
#define IS_CHECKED 1 /* What was freed stays for a while. */
#else
#define TIMES 1
#define IS_CHECKED 0
#endif

enum {
  kBytes = 4000,
  kLongBytes = 20000,
  kStarts = 6,
  kHops = 8,
  kBurst = 1000,  /* Some four windows, of kBytes each. */
  kPosts = 60000, /* 240 MB. */
  kLongPosts = 6000, /* 120 MB. */
  kWarm = 2000,
  kGrowthMax = TIMES * (12 << 20),
  kThreadsMax = 400, /* A window has no more than 233 posts of kBytes. */
  kPosters = 4
};

static unsigned char* payload; /* Of kLongBytes. */
static sterna_job_barrier all;

static uint32_t add(uint32_t* counter, uint32_t count) {
  return __atomic_add_fetch(counter, count, __ATOMIC_RELAXED);
}

static void wait_for(const uint32_t* counter, uint32_t count) {
  while (__atomic_load_n(counter, __ATOMIC_RELAXED) < count) {
    sterna_thread_sleep(100000);
  }
  EXPECT(__atomic_load_n(counter, __ATOMIC_RELAXED) == count);
}

/* --- Services in threads that post further ---------------------------------------------------- */

static uint32_t spread_count;

static void post_spread(uint32_t node, uint32_t hops, uint32_t way) {
  unsigned char arguments[kBytes];
  sterna_rpc_packing packing;
  memcpy(arguments, &hops, sizeof hops);
  memcpy(arguments + sizeof hops, payload + sizeof hops, kBytes - sizeof hops);
  if (way % 3 == 0) {
    EXPECT(sterna_rpc_post(node, "spread", arguments, kBytes) == STERNA_SUCCESS);
  } else if (way % 3 == 1) {
    EXPECT(sterna_rpc_multicast_post(&node, 1, "spread", arguments, kBytes) == STERNA_SUCCESS);
  } else {
    EXPECT(sterna_rpc_begin(&packing, "spread", NULL) == STERNA_SUCCESS);
    EXPECT(sterna_rpc_pack(&packing, arguments, kBytes, STERNA_PACK_SAFER) == STERNA_SUCCESS);
    EXPECT(sterna_rpc_pack(&packing, payload + kBytes, kLongBytes - kBytes, STERNA_PACK_CHEAPER) ==
           STERNA_SUCCESS);
    EXPECT(sterna_rpc_post_packed(&packing, node) == STERNA_SUCCESS);
  }
}

static sterna_status spread(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  const unsigned char* const arguments = sterna_rpc_arguments(request, &bytes);
  uint32_t hops = 0;
  (void)context;
  EXPECT(bytes == kBytes || bytes == kLongBytes);
  memcpy(&hops, arguments, sizeof hops);
  EXPECT(memcmp(arguments + sizeof hops, payload + sizeof hops, bytes - sizeof hops) == 0);
  if (hops != 0) {
    const uint32_t way = add(&spread_count, 0);
    post_spread(next_node(), hops - 1, way);
    post_spread(hops % 2 == 0 ? sterna_node_index() : next_node(), hops - 1, way + 1);
  }
  add(&spread_count, 1);
  return STERNA_SUCCESS;
}

/* All nodes do the same, so each serves as many as it has caused. */
static void test_floods(void) {
  for (uint32_t i = 0; i < kStarts; ++i) {
    post_spread(next_node(), kHops, i);
  }
  wait_for(&spread_count, kStarts * ((2u << kHops) - 1));
}

/* --- Quick services, which do not wait -------------------------------------------------------- */

static uint32_t noted, bursts;

static sterna_status note(void* context, sterna_rpc_request* request) {
  size_t bytes = 0;
  const void* const arguments = sterna_rpc_arguments(request, &bytes);
  (void)context;
  EXPECT(bytes == kBytes && memcmp(arguments, payload, kBytes) == 0);
  add(&noted, 1);
  return STERNA_SUCCESS;
}

static sterna_status burst(void* context, sterna_rpc_request* request) {
  (void)context;
  for (int i = 0; i < kBurst; ++i) {
    EXPECT(sterna_rpc_post(sterna_rpc_from(request), "note", payload, kBytes) == STERNA_SUCCESS);
  }
  add(&bursts, 1);
  return STERNA_SUCCESS;
}

static void test_quick(void) {
  EXPECT(sterna_rpc_call_for(next_node(), "burst", NULL, 0, NULL, 0, NULL, STERNA_FOREVER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_rpc_post(next_node(), "burst", NULL, 0) == STERNA_SUCCESS);
  wait_for(&noted, 2 * kBurst);
  wait_for(&bursts, 2);
}

/* --- A receiver that is slow ------------------------------------------------------------------ */

static uint32_t taken;

/* Holds its node up for a while when it has begun: nobody polls there. */
static sterna_status take_slowly(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  if (add(&taken, 1) == kWarm + 1) {
    usleep(300000);
  }
  return STERNA_SUCCESS;
}

static sterna_status take(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  add(&taken, 1);
  return STERNA_SUCCESS;
}

/* Those that wait for their arguments, too, are not more than a window has. */
static sterna_status take_long(void* context, sterna_rpc_request* request) {
  size_t bytes = 0, count = 0;
  const void* const arguments = sterna_rpc_arguments(request, &bytes);
  (void)context;
  EXPECT(bytes == kLongBytes && memcmp(arguments, payload, kLongBytes) == 0);
  EXPECT(sterna_thread_list(NULL, 0, &count) == STERNA_SUCCESS && count < kThreadsMax);
  add(&taken, 1);
  return STERNA_SUCCESS;
}

static sterna_status tell_taken(void* context, sterna_rpc_request* request) {
  (void)context;
  const uint32_t count = add(&taken, 0);
  return sterna_rpc_reply(request, &count, sizeof count);
}

/* Keeps its worker, and sees how many threads there are meanwhile. */
static sterna_status compute(void* context, sterna_rpc_request* request) {
  struct timespec begin, now;
  (void)context, (void)request;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    size_t count = 0;
    EXPECT(sterna_thread_list(NULL, 0, &count) == STERNA_SUCCESS && count < kThreadsMax);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 300);
  return STERNA_SUCCESS;
}

static void post_many(const char* service, size_t bytes, uint32_t count, long before) {
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT(sterna_rpc_post(next_node(), service, payload, bytes) == STERNA_SUCCESS);
    if (before != 0 && i % 500 == 0 && resident_bytes() - before >= kGrowthMax) {
      fprintf(stderr, "not true: %ld bytes more after %u posts\n", resident_bytes() - before, i);
      exit(1);
    }
  }
}

static void await_taken(uint32_t count) {
  uint32_t told = 0;
  while (told < count) {
    EXPECT(sterna_rpc_call_for(next_node(), "tell taken", NULL, 0, &told, sizeof told, NULL,
                               STERNA_FOREVER) == STERNA_SUCCESS);
    sterna_thread_sleep(100000);
  }
  EXPECT(told == count);
}

/* Of a kernel thread and of a user thread. */
static void post_to_slow(void* argument) {
  (void)argument;
  post_many("take slowly", kBytes, kWarm, 0);
  await_taken(kWarm);
  post_many("take slowly", kBytes, kPosts, resident_bytes());
  await_taken(kWarm + kPosts);
}

static void post_to_busy(void* argument) {
  (void)argument;
  for (uint32_t i = 0; i < sterna_worker_count(); ++i) { /* All nodes have as many. */
    EXPECT(sterna_rpc_post(next_node(), "compute", NULL, 0) == STERNA_SUCCESS);
  }
  /* Where all is one process, its threads and their stacks are here. */
  post_many("take", kBytes, kPosts / 10,
            sterna_node_count() > 1 && !IS_CHECKED ? resident_bytes() : 0);
  await_taken(kWarm + kPosts + kPosts / 10);
}

/* Arguments that go alone: copied here until they are on their way. */
static void post_long(void* argument) {
  uint32_t* const sum = argument;
  const char* const services[] = {"take long", "take long quickly"};
  for (int i = 0; i < 2; ++i) {
    post_many(services[i], kLongBytes, kLongPosts, IS_CHECKED ? 0 : resident_bytes());
    *sum += kLongPosts;
    await_taken(*sum);
  }
}

static void test_bounds(void) {
  uint32_t sum = kWarm + kPosts + kPosts / 10;
  sterna_thread* thread = NULL;
  post_to_slow(NULL);
  EXPECT(sterna_thread_create(NULL, post_to_busy, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  post_long(&sum);
  EXPECT(sterna_thread_create(NULL, post_long, &sum, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

/* --- A receiver that dies --------------------------------------------------------------------- */

static uint32_t is_held;

static sterna_status say_held(void* context, sterna_rpc_request* request) {
  (void)context, (void)request;
  add(&is_held, 1);
  return STERNA_SUCCESS;
}

/* Serves nothing any more, until it is killed. */
static sterna_status hold_up(void* context, sterna_rpc_request* request) {
  (void)context;
  EXPECT(sterna_rpc_post(sterna_rpc_from(request), "say held", NULL, 0) == STERNA_SUCCESS);
  for (;;) {
    pause();
  }
}

static void post_until_closed(void* argument) {
  sterna_status status = STERNA_SUCCESS;
  (void)argument;
  while (status == STERNA_SUCCESS) {
    status = sterna_rpc_post(1, "note", payload, kBytes);
  }
  EXPECT(status == STERNA_CLOSED);
  expect_detail("node 1 is gone");
}

static void await_blocked(sterna_thread* const* posters) {
  for (size_t blocked = 0; blocked != kPosters;) {
    sterna_thread_info infos[32];
    size_t count = 0;
    EXPECT(sterna_thread_list(infos, 32, &count) == STERNA_SUCCESS && count <= 32);
    blocked = 0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < kPosters; ++j) {
        blocked += infos[i].thread == posters[j] && infos[i].state == STERNA_THREAD_BLOCKED;
      }
    }
  }
}

static void see_it_lost(void) {
  sterna_thread* posters[kPosters];
  pid_t victim = 0;
  EXPECT(sterna_message_receive(1, 1, &victim, sizeof victim, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_rpc_post(1, "hold up", NULL, 0) == STERNA_SUCCESS);
  wait_for(&is_held, 1);
  for (int i = 0; i < kPosters; ++i) {
    EXPECT(sterna_thread_create(NULL, post_until_closed, NULL, &posters[i]) == STERNA_SUCCESS);
  }
  await_blocked(posters);
  EXPECT(kill(victim, SIGKILL) == 0);
  for (int i = 0; i < kPosters; ++i) {
    EXPECT(sterna_thread_join(posters[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_rpc_post(1, "note", payload, kBytes) == STERNA_CLOSED);
}

static void test_loss(void) {
  if (sterna_rank() == 0) {
    see_it_lost();
  } else {
    const pid_t self = getpid();
    EXPECT(sterna_message_send(0, 1, &self, sizeof self) == STERNA_SUCCESS);
    pause();
  }
}

int main(int argc, char** argv) {
  payload = filled(kLongBytes, 3);
  register_as("spread", STERNA_RPC_THREAD, 0, spread);
  register_as("note", STERNA_RPC_QUICK, 0, note);
  register_as("burst", STERNA_RPC_QUICK, 0, burst);
  register_as("take slowly", STERNA_RPC_QUICK, 0, take_slowly);
  register_as("take", STERNA_RPC_THREAD, 0, take);
  register_as("take long", STERNA_RPC_THREAD, 0, take_long);
  register_as("take long quickly", STERNA_RPC_QUICK, 0, take_long);
  register_as("tell taken", STERNA_RPC_QUICK, 0, tell_taken);
  register_as("compute", STERNA_RPC_THREAD, 0, compute);
  register_as("say held", STERNA_RPC_QUICK, 0, say_held);
  register_as("hold up", STERNA_RPC_QUICK, 0, hold_up);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  if (argc > 1 && strcmp(argv[1], "lost") == 0) {
    test_loss();
  } else {
    EXPECT(sterna_job_barrier_init(&all, 1, 0) == STERNA_SUCCESS);
    test_floods();
    EXPECT(sterna_job_barrier_wait(&all, NULL) == STERNA_SUCCESS);
    test_quick();
    EXPECT(sterna_job_barrier_wait(&all, NULL) == STERNA_SUCCESS);
    if (sterna_rank() == 0) { /* The others only serve it. */
      test_bounds();
    }
    EXPECT(sterna_job_barrier_wait(&all, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_job_barrier_destroy(&all) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  free(payload);
  puts("No Errors");
  return 0;
}
