/* Threads and bubbles that many change at a time, under several policies, and while they end. */
#include "expect.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/policy.h"
#include "sterna/sterna.h"

enum { kBubbles = 4, kThreads = 24, kMoves = 300 };

static sterna_bubble* bubbles[kBubbles];
static sterna_bubble* around;
static int turns; /* Atomic. */

/* Each sends itself and its bubble around; now and then it meets nobody at a barrier. */
static void wander(void* argument) {
  uint32_t random = 2654435761u * (uint32_t)(1 + (size_t)argument);
  for (int i = 0; i < kMoves; ++i) {
    random = random * 1664525u + 1013904223u;
    const sterna_move move = (random & 1024) != 0 ? STERNA_MOVE_NOW : STERNA_MOVE_STAY;
    sterna_bubble* const to = bubbles[(random >> 16) % kBubbles];
    sterna_bubble* const what = bubbles[(random >> 20) % kBubbles];
    if ((random >> 28) < 12) {
      EXPECT(sterna_held_move(sterna_held_thread(sterna_thread_self()), to, move) ==
             STERNA_SUCCESS);
    } else { /* Into itself, or too deep: refused. */
      const sterna_status status =
          sterna_held_move(sterna_held_bubble(what), (random & 4096) != 0 ? around : to, move);
      EXPECT(status == STERNA_SUCCESS || status == STERNA_INVALID_ARGUMENT);
    }
    if ((random & 8192) != 0) {
      sterna_thread_yield();
    }
    __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
  }
}

static void test_storm(const char* policy) {
  EXPECT(sterna_policy_set(policy) == STERNA_SUCCESS);
  turns = 0;
  EXPECT(sterna_bubble_create(&around) == STERNA_SUCCESS);
  for (int i = 0; i < kBubbles; ++i) {
    EXPECT(sterna_bubble_create(&bubbles[i]) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_bubble(around, bubbles[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(sterna_bubble_add_thread(bubbles[i % kBubbles], NULL, wander, (void*)(size_t)i) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(around) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(around) == STERNA_SUCCESS);
  EXPECT(turns == kThreads * kMoves);
}

static sterna_bubble* spare;
static int is_over; /* Atomic. */

/* Looks at, and moves, whatever thread there is: handles of threads that end meanwhile. */
static void meddle(void* argument) {
  sterna_thread_info infos[kThreads];
  sterna_thread* const me = sterna_thread_self();
  (void)argument;
  while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
    size_t found = 0;
    EXPECT(sterna_thread_list(infos, kThreads, &found) == STERNA_SUCCESS);
    for (size_t i = 0; i < found && i < kThreads; ++i) {
      const sterna_held held = sterna_held_thread(infos[i].thread);
      for (int what = 0; infos[i].thread != me && what < 6; ++what) {
        sterna_bubble* holder = NULL;
        const sterna_status status =
            what % 3 == 0   ? sterna_held_holder(held, &holder)
            : what % 3 == 1 ? sterna_held_set_settled(held, what & 1)
                            : sterna_held_move(held, what == 5 ? spare : NULL, STERNA_MOVE_STAY);
        EXPECT(status == STERNA_SUCCESS || status == STERNA_REFUSED ||
               status == STERNA_INVALID_ARGUMENT || status == STERNA_UNSUPPORTED);
      }
    }
    sterna_thread_sleep(20000); /* Spinning threads of several processes would stop each other. */
  }
}

static void yield_twice(void* argument) {
  (void)argument;
  sterna_thread_yield();
  sterna_thread_yield();
}

/* Their memory goes while others look at them. */
static void test_meddling(void) {
  sterna_thread* meddler = NULL;
  is_over = 0;
  EXPECT(sterna_bubble_create(&spare) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(spare) == STERNA_SUCCESS);
  EXPECT(sterna_thread_create(NULL, meddle, NULL, &meddler) == STERNA_SUCCESS);
  for (int round = 0; round < 100; ++round) {
    sterna_bubble* bubble = NULL;
    EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
    for (int i = 0; i < 4; ++i) {
      EXPECT(sterna_bubble_add_thread(bubble, NULL, yield_twice, NULL) == STERNA_SUCCESS);
    }
    EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  EXPECT(sterna_thread_join(meddler) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(spare) == STERNA_SUCCESS);
}

int main(void) {
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_meddling();
  test_storm("flat");
  test_storm("spread");
  test_storm("gang(slice=1)");
  test_storm("fallback(burst,steal)");
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
