/* Wrong calls, and right ones that are rare: each is answered, by an error that names the object
 * and the rule, or by what was asked for; none hangs, though one worker serves all. */
#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/key.h"
#include "sterna/loop.h"
#include "sterna/seed.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

static sterna_bubble* bubble;
static sterna_mutex mutex = STERNA_MUTEX_INIT;
static sterna_spin_lock spin = STERNA_SPIN_LOCK_INIT;
static int count; /* Atomic. */

static void count_up(void* unused) {
  (void)unused;
  __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
}

static int counted(void) {
  return __atomic_exchange_n(&count, 0, __ATOMIC_SEQ_CST);
}

static void expect_detail(const char* words) {
  char text[256];
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  if (strstr(text, words) == NULL) {
    fprintf(stderr, "not true: \"%s\" has \"%s\"\n", text, words);
    exit(1);
  }
}

static void run_on_thread(sterna_thread_function function) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(NULL, function, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

/* What lies below is written over. */
static void use_stack(void) {
  volatile char bytes[4096];
  memset((char*)bytes, 0x5a, sizeof bytes);
}

static void leave_cleanup(void* unused) {
  static sterna_cleanup cleanup;
  (void)unused;
  EXPECT(sterna_thread_cleanup_push(&cleanup, count_up, NULL) == STERNA_SUCCESS);
  use_stack();
}

static void wait_at_barrier(void* unused) {
  (void)unused;
  for (int i = 0; i < 10; ++i) {
    sterna_thread_yield();
  }
  EXPECT(sterna_bubble_barrier(bubble, NULL) == STERNA_SUCCESS);
}

static void join_own(void* unused) {
  (void)unused;
  EXPECT(sterna_bubble_join(bubble) == STERNA_DEADLOCK);
  expect_detail("which it holds");
}

static void test_bubbles(void) {
  sterna_bubble* inner = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(bubble, bubble) == STERNA_INVALID_ARGUMENT);
  expect_detail("nest as a tree");
  EXPECT(sterna_bubble_add_bubble(bubble, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(bubble, inner) == STERNA_INVALID_ARGUMENT);
  expect_detail("in another one already");
  EXPECT(sterna_bubble_add_bubble(inner, bubble) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_submit(inner) == STERNA_INVALID_ARGUMENT);
  expect_detail("with which it is submitted");
  EXPECT(sterna_bubble_join(bubble) == STERNA_INVALID_ARGUMENT);
  expect_detail("not submitted");
  EXPECT(sterna_bubble_set_priority(bubble, STERNA_PRIORITY_MAX + 1) == STERNA_INVALID_ARGUMENT);
  expect_detail("priority 25");
  options.is_detached = 2;
  EXPECT(sterna_bubble_add_thread(bubble, &options, count_up, NULL) == STERNA_INVALID_ARGUMENT);
  expect_detail("are 0 or 1");
  EXPECT(sterna_bubble_add_thread(bubble, NULL, leave_cleanup, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_at_barrier, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, NULL, join_own, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_BUSY);
  expect_detail("submitted once");
  EXPECT(sterna_bubble_set_name(bubble, "late") == STERNA_BUSY);
  EXPECT(sterna_bubble_set_slice(NULL, 1) == STERNA_INVALID_ARGUMENT);
  expect_detail("what sterna_bubble_create gave");
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_INVALID_ARGUMENT);
  expect_detail("join it");
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(counted() == 1);
}

static void test_stacks(void) {
  void* stack = NULL;
  void* other = NULL;
  void* base = NULL;
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_stack_create(100000, &stack, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_stack_destroy(stack) == STERNA_SUCCESS);
  EXPECT(sterna_stack_destroy(stack) == STERNA_INVALID_ARGUMENT);
  expect_detail("destroyed once");
  options.stack = stack;
  EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_stack_create(100000, &stack, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_stack_create(100000, &other, NULL) == STERNA_SUCCESS);
  EXPECT(stack != other);
  options.stack = other;
  for (int i = 0; i < 3; ++i) {
    EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_SUCCESS);
    EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  }
  EXPECT(counted() == 3);
  EXPECT(sterna_stack_destroy(other) == STERNA_SUCCESS);
  EXPECT(sterna_stack_destroy(stack) == STERNA_SUCCESS);
  /* That of an ordinary thread is the runtime's. */
  EXPECT(sterna_thread_create(NULL, count_up, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_stack(thread, &base, NULL, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_stack_destroy(base) == STERNA_INVALID_ARGUMENT);
  EXPECT(counted() == 1);
  options.stack = NULL;
  options.stack_bytes = (size_t)-4096;
  EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  expect_detail("2 GiB");
}

/* Addresses that are nobody's handle. */
static void test_handles(void* unused) {
  char local[64];
  (void)unused;
  EXPECT(sterna_thread_join((sterna_thread*)local) == STERNA_INVALID_ARGUMENT);
  expect_detail("this is none");
  EXPECT(sterna_thread_join((sterna_thread*)&mutex) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_join(sterna_thread_self()) == STERNA_DEADLOCK);
  expect_detail("joins itself");
}

static void end_thread(void* unused) {
  count_up(unused);
  (void)sterna_thread_exit();
}

static void test_timers(void* unused) {
  sterna_timer timers[3];
  (void)unused;
  /* The shortest period leaves time to others, the longest one does not overflow. */
  EXPECT(sterna_timer_init(&timers[0], count_up, NULL, 1) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&timers[0], 0) == STERNA_SUCCESS);
  while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 1000) {
    sterna_thread_sleep(1000);
  }
  EXPECT(sterna_timer_cancel(&timers[0]) == STERNA_SUCCESS);
  (void)counted();
  EXPECT(sterna_timer_init(&timers[0], count_up, NULL, UINT64_MAX) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&timers[0], 0) == STERNA_SUCCESS);
  /* A function may end its thread: the other timers go on. */
  EXPECT(sterna_timer_init(&timers[1], end_thread, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&timers[1], 1000) == STERNA_SUCCESS);
  EXPECT(sterna_timer_init(&timers[2], count_up, NULL, 0) == STERNA_SUCCESS);
  EXPECT(sterna_timer_set(&timers[2], 2000) == STERNA_SUCCESS);
  while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 3) {
    sterna_thread_sleep(1000);
  }
  EXPECT(counted() == 3);
  EXPECT(sterna_timer_cancel(&timers[1]) == STERNA_NOT_FOUND);
  EXPECT(sterna_timer_cancel(&timers[2]) == STERNA_NOT_FOUND);
  EXPECT(sterna_timer_cancel(&timers[0]) == STERNA_SUCCESS);
}

static void take_spin(void* unused) {
  EXPECT(sterna_spin_lock_take(&spin) == STERNA_SUCCESS);
  count_up(unused);
  EXPECT(sterna_spin_lock_give(&spin) == STERNA_SUCCESS);
}

/* The holder is less urgent than who waits, and has no other worker. */
static void test_inversion(void* unused) {
  sterna_thread* urgent = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  (void)unused;
  options.priority = STERNA_PRIORITY_REAL_TIME;
  EXPECT(sterna_spin_lock_take(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(&options, take_spin, NULL, &urgent) == STERNA_SUCCESS);
  sterna_thread_yield();
  EXPECT(counted() == 0);
  EXPECT(sterna_spin_lock_give(&spin) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(urgent) == STERNA_SUCCESS);
  EXPECT(counted() == 1);
}

static void test_seeds(void* unused) {
  sterna_seed seed;
  (void)unused;
  EXPECT(sterna_seed_plant(&seed, count_up, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_seed_plant(&seed, count_up, NULL) == STERNA_BUSY);
  expect_detail("planted already");
  EXPECT(sterna_seed_join(&seed) == STERNA_SUCCESS);
  EXPECT(sterna_seed_join(&seed) == STERNA_INVALID_ARGUMENT);
  EXPECT(counted() == 1);
}

static void fail(void* unused) {
  (void)unused;
  EXPECT(!"the destructor of a deleted key is not called");
}

static void test_keys(void* unused) {
  sterna_key former = 0;
  sterna_key key = 0;
  (void)unused;
  EXPECT(sterna_key_create(&former, fail) == STERNA_SUCCESS);
  EXPECT(sterna_key_set(former, &count) == STERNA_SUCCESS);
  EXPECT(sterna_key_get(former) == &count);
  EXPECT(sterna_key_delete(former) == STERNA_SUCCESS);
  EXPECT(sterna_key_get(former) == NULL);
  EXPECT(sterna_key_set(former, &count) == STERNA_INVALID_ARGUMENT);
  expect_detail("has been deleted");
  EXPECT(sterna_key_delete(former) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_key_create(&key, fail) == STERNA_SUCCESS);
  EXPECT(key == former); /* The same number, but not the same value. */
  EXPECT(sterna_key_get(key) == NULL);
  EXPECT(sterna_key_delete(key) == STERNA_SUCCESS);
}

static void lock_and_unlock(void* unused) {
  count_up(unused);
  const sterna_status status = sterna_mutex_lock(&mutex);
  EXPECT(status == STERNA_SUCCESS || status == STERNA_INVALID_ARGUMENT);
  if (status == STERNA_SUCCESS) {
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
  } else {
    expect_detail("was destroyed");
    count_up(unused);
  }
}

/* Who has been woken for a mutex, and finds it destroyed, is told so. */
static void test_mutex(void* unused) {
  sterna_thread* waiters[2];
  (void)unused;
  for (int present = 1; present <= 2; ++present) {
    EXPECT(sterna_mutex_init(&mutex, STERNA_MUTEX_CHECKED) == STERNA_SUCCESS);
    EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
    for (int i = 0; i < present; ++i) {
      EXPECT(sterna_thread_create(NULL, lock_and_unlock, NULL, &waiters[i]) == STERNA_SUCCESS);
      sterna_thread_yield();
    }
    EXPECT(counted() == present);
    EXPECT(sterna_mutex_destroy(&mutex) == STERNA_BUSY);
    EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
    const sterna_status status = sterna_mutex_destroy(&mutex);
    EXPECT(status == (present == 1 ? STERNA_SUCCESS : STERNA_BUSY));
    if (status == STERNA_BUSY) {
      expect_detail("others wait");
    }
    for (int i = 0; i < present; ++i) {
      EXPECT(sterna_thread_join(waiters[i]) == STERNA_SUCCESS);
    }
    EXPECT(counted() == (present == 1 ? 1 : 0));
  }
}

static void add_up(uint64_t begin, uint64_t end, void* sum) {
  __atomic_fetch_add((uint64_t*)sum, end - begin, __ATOMIC_SEQ_CST);
}

/* Numbers at the ends of their ranges: each iteration is run once whatever they are. */
static void test_loops(void* unused) {
  static const uint64_t chunks[] = {0, 7, 1ull << 63, UINT64_MAX};
  static const uint64_t firsts[] = {0, 3, 1ull << 63, UINT64_MAX};
  static const uint64_t sizes[] = {1, 1000, 1ull << 40, (1ull << 62) - 1, UINT64_MAX};
  sterna_loop_options options = STERNA_LOOP_OPTIONS_DEFAULT;
  (void)unused;
  for (int i = 0; i < 9 * 4 * 4 * 5; ++i) {
    uint64_t sum = 0;
    const uint64_t size = sizes[i % 5];
    options.scheme = (sterna_loop_scheme)(i / 5 % 9);
    options.threads = 5;
    options.chunk = chunks[i / 45 % 4];
    options.first = firsts[i / 180 % 4];
    options.group = i % 3 == 0 ? UINT32_MAX : 0;
    if (size > 1000 && options.chunk < 1000) {
      options.chunk = size / 1000; /* Else there would be too many. */
    }
    EXPECT(sterna_loop_run(0, size, &options, add_up, &sum) == STERNA_SUCCESS);
    EXPECT(sum == size);
  }
  options.threads = UINT32_MAX;
  EXPECT(sterna_loop_run(0, 1ull << 40, &options, add_up, NULL) == STERNA_INVALID_ARGUMENT);
  expect_detail("65536 at most");
}

static void end_in_loop(uint64_t begin, uint64_t end, void* planter) {
  (void)begin;
  (void)end;
  count_up(NULL);
  if (sterna_thread_self() == planter) {
    (void)sterna_thread_exit();
  }
  for (int i = 0; i < 10; ++i) {
    sterna_thread_yield();
  }
}

/* The stack of the caller stays until nobody uses it. */
static void end_with_loop(void* unused) {
  sterna_loop_options options = STERNA_LOOP_OPTIONS_DEFAULT;
  (void)unused;
  options.scheme = STERNA_LOOP_BLOCK;
  options.threads = 4;
  (void)sterna_loop_run(0, 4, &options, end_in_loop, sterna_thread_self());
  EXPECT(!"the body has ended the thread");
}

static void push_and_leave(void* argument) {
  static sterna_cleanup cleanup;
  (void)argument;
  EXPECT(sterna_thread_cleanup_push(&cleanup, count_up, NULL) == STERNA_SUCCESS);
}

static void leave_cleanup_in_once(void* unused) {
  static sterna_once once = STERNA_ONCE_INIT;
  (void)unused;
  EXPECT(sterna_once_call(&once, push_and_leave, NULL) == STERNA_SUCCESS);
  use_stack();
}

static void test_ends(void* unused) {
  (void)unused;
  run_on_thread(end_with_loop);
  EXPECT(counted() == 4);
  run_on_thread(leave_cleanup_in_once);
  EXPECT(counted() == 1);
}

/* The text of a refusal is that of the last one. */
static void test_details(void) {
  EXPECT(sterna_mutex_unlock(&mutex) == STERNA_NOT_OWNER);
  expect_detail("nobody holds it");
  EXPECT(sterna_condition_signal(NULL) == STERNA_INVALID_ARGUMENT);
  expect_detail("sterna_condition_signal: an argument is NULL");
  EXPECT(sterna_rwlock_init(NULL, STERNA_RWLOCK_FAIR) == STERNA_INVALID_ARGUMENT);
  expect_detail("sterna_rwlock_init");
}

static int recurse(int depth) {
  volatile char frame[512];
  frame[0] = (char)depth;
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

static void overflow_stack(void* unused) {
  (void)unused;
  (void)recurse(0);
}

int main(int argc, char** argv) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 1;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
    sterna_thread* thread = NULL;
    sterna_thread_options deep = STERNA_THREAD_OPTIONS_DEFAULT;
    deep.name = "deep";
    EXPECT(sterna_thread_create(&deep, overflow_stack, NULL, &thread) == STERNA_SUCCESS);
    (void)sterna_thread_join(thread);
  }
  test_bubbles();
  test_stacks();
  test_details();
  run_on_thread(test_handles);
  run_on_thread(test_timers);
  run_on_thread(test_inversion);
  run_on_thread(test_seeds);
  run_on_thread(test_keys);
  run_on_thread(test_mutex);
  run_on_thread(test_loops);
  run_on_thread(test_ends);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
