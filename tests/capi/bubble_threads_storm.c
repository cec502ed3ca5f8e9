/* Threads of bubbles whose handles are joined, detached and cancelled by others while policies and
 * movers send them and their bubbles around. */
#include "expect.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/policy.h"
#include "sterna/sterna.h"

enum { kInner = 3, kThreads = 24, kRounds = 40, kTurns = 60, kJoiners = 4 };

static sterna_bubble* around;
static sterna_bubble* inner[kInner];
static sterna_thread* threads[kThreads];
static int ends;        /* Atomic: of threads, in whatever way. */
static int freed;       /* Atomic: handles that were joined or detached. */
static int next_handle; /* Atomic. */
static int is_over;     /* Atomic. */

static void note_end(void* argument) {
  (void)argument;
  __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

static void work(void* argument) {
  uint32_t random = 2654435761u * (uint32_t)(1 + (size_t)argument);
  sterna_cleanup cleanup;
  EXPECT(sterna_thread_cleanup_push(&cleanup, note_end, NULL) == STERNA_SUCCESS);
  for (int i = 0; i < kTurns; ++i) {
    random = random * 1664525u + 1013904223u;
    if ((random >> 28) < 4) {
      EXPECT(sterna_held_move(sterna_held_thread(sterna_thread_self()),
                              inner[(random >> 16) % kInner], STERNA_MOVE_NOW) == STERNA_SUCCESS);
    } else if ((random >> 28) < 6) {
      (void)sterna_thread_park(10000);
    } else {
      sterna_thread_yield();
    }
    sterna_thread_test_cancel();
  }
  EXPECT(sterna_thread_cleanup_pop(1) == STERNA_SUCCESS);
}

/* Takes one handle after the other: some joins come before the start, some long after the end. */
static void free_handles(void* argument) {
  (void)argument;
  for (;;) {
    const int i = __atomic_fetch_add(&next_handle, 1, __ATOMIC_RELAXED);
    if (i >= kThreads) {
      return;
    }
    if (i % 5 == 1) {
      EXPECT(sterna_thread_cancel(threads[i]) == STERNA_SUCCESS);
    }
    if (i % 7 == 2) {
      EXPECT(sterna_thread_set_priority(threads[i], STERNA_PRIORITY_BATCH) == STERNA_SUCCESS);
    }
    if (i % 4 == 3) {
      EXPECT(sterna_thread_detach(threads[i]) == STERNA_SUCCESS);
    } else {
      const sterna_status joined = sterna_thread_join(threads[i]);
      EXPECT(joined == STERNA_SUCCESS || joined == STERNA_CANCELLED);
    }
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
  }
}

static void move_bubbles(void* argument) {
  (void)argument;
  for (uint32_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); ++i) {
    (void)sterna_held_move(sterna_held_bubble(inner[i % kInner]), inner[(i / 2) % kInner],
                           STERNA_MOVE_NOW);
    (void)sterna_held_move(sterna_held_bubble(inner[i % kInner]), around, STERNA_MOVE_STAY);
    EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
    sterna_thread_sleep(20000);
  }
}

static void make_all(void) {
  EXPECT(sterna_bubble_create(&around) == STERNA_SUCCESS);
  for (int i = 0; i < kInner; ++i) {
    EXPECT(sterna_bubble_create(&inner[i]) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_bubble(around, inner[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) {
    sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
    options.bubble = inner[i % kInner];
    options.is_cancellable = 1;
    options.priority = i % 6 == 0 ? STERNA_PRIORITY_NICE(2) : STERNA_PRIORITY_NORMAL;
    EXPECT(sterna_thread_create(&options, work, (void*)(size_t)i, &threads[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) { /* Among those that their bubble joins. */
    EXPECT(sterna_bubble_add_thread(inner[i % kInner], NULL, work, (void*)(size_t)i) ==
           STERNA_SUCCESS);
  }
}

/* The bubble is joined in the middle of it, and its memory gone before the last handles. */
static void test_round(int round) {
  sterna_thread *joiners[kJoiners], *mover = NULL;
  ends = freed = next_handle = is_over = 0;
  make_all();
  for (int i = 0; i < kJoiners; ++i) {
    if (round % 2 == 0) {
      EXPECT(sterna_thread_create(NULL, free_handles, NULL, &joiners[i]) == STERNA_SUCCESS);
    }
  }
  EXPECT(sterna_bubble_submit(around) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(NULL, move_bubbles, NULL, &mover) == STERNA_SUCCESS);
  sterna_thread_sleep(100000);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_thread_join(mover) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(around) == STERNA_SUCCESS);
  EXPECT(__atomic_load_n(&ends, __ATOMIC_RELAXED) >= kThreads);
  for (int i = 0; i < kJoiners; ++i) {
    if (round % 2 != 0) {
      EXPECT(sterna_thread_create(NULL, free_handles, NULL, &joiners[i]) == STERNA_SUCCESS);
    }
    EXPECT(sterna_thread_join(joiners[i]) == STERNA_SUCCESS);
  }
  EXPECT(freed == kThreads);
}

int main(void) {
  const char* const policies[] = {"flat", "spread", "steal", "gang(slice=1)",
                                  "fallback(burst,steal)"};
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 4;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  for (int round = 0; round < kRounds; ++round) {
    EXPECT(sterna_policy_set(policies[(size_t)round % (sizeof policies / sizeof *policies)]) ==
           STERNA_SUCCESS);
    test_round(round);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
