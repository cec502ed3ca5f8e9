/* Threads and bubbles that change their bubble, and where they begin and stay, while they run. */
#include "sterna/held.h"

#include <string.h>

#include "expect.h"
#include "sterna/control.h"
#include "sterna/policy.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"

enum { kBubbles = 4, kThreads = 24, kMoves = 300 };

static sterna_semaphore go = STERNA_SEMAPHORE_INIT;
static sterna_semaphore here = STERNA_SEMAPHORE_INIT;
static int count; /* Atomic. */

static int has_detail(const char* wanted) {
  char text[240];
  (void)sterna_error_detail(text, sizeof text);
  if (strstr(text, wanted) == NULL) {
    fprintf(stderr, "the text is: %s\n", text);
    return 0;
  }
  return 1;
}

static sterna_bubble* holder_of(sterna_held held) {
  sterna_bubble* holder = NULL;
  EXPECT(sterna_held_holder(held, &holder) == STERNA_SUCCESS);
  return holder;
}

static int is_at(sterna_held held, const char* place) {
  char text[32];
  EXPECT(sterna_held_place(held, text, sizeof text) == STERNA_SUCCESS);
  return strcmp(text, place) == 0;
}

static void wait_for_go(void* argument) {
  *(sterna_thread**)argument = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
}

/* A running bubble with one thread that waits for `go`, at `place`. */
static sterna_bubble* start_waiter(sterna_thread** thread, const char* place) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  if (place != NULL) {
    EXPECT(sterna_held_set_place(sterna_held_bubble(bubble), place) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  return bubble;
}

static void test_thread(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* from = start_waiter(&thread, "pu:0");
  sterna_bubble* to = start_waiter(&other, "pu:1");
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(holder_of(held) == from && is_at(held, "pu:0"));
  /* Now: it goes where its bubble is. */
  EXPECT(sterna_held_move(held, to, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == to && is_at(held, "pu:1"));
  /* The one that it has left ends without it. */
  EXPECT(sterna_bubble_join(from) == STERNA_SUCCESS);
  EXPECT(count == 0);
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(to) == STERNA_SUCCESS);
  EXPECT(count == 2);
}

static void test_stay(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* from = NULL;
  sterna_bubble* to = start_waiter(&other, NULL);
  count = 0;
  EXPECT(sterna_bubble_create(&from) == STERNA_SUCCESS);
  EXPECT(sterna_held_begin_at(sterna_held_bubble(from), "pu:1") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(from, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(from) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(is_at(held, "pu:1"));
  EXPECT(sterna_held_move(held, to, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == to && is_at(held, "pu:1") &&
         is_at(sterna_held_bubble(to), "machine:0"));
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS); /* Now the policy knows its new bubble. */
  EXPECT(is_at(held, "machine:0"));
  /* Beside another one, which may be a bubble. */
  EXPECT(sterna_held_begin_at(sterna_held_bubble(to), "pu:0") == STERNA_SUCCESS);
  EXPECT(sterna_held_begin_beside(held, sterna_held_bubble(to)) == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:0"));
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(from) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(to) == STERNA_SUCCESS);
  EXPECT(count == 2);
}

static void test_bubble(void) {
  sterna_thread* thread = NULL;
  sterna_thread* other = NULL;
  sterna_bubble* inner = start_waiter(&thread, NULL);
  sterna_bubble* outer = start_waiter(&other, "pu:1");
  const sterna_held held = sterna_held_bubble(inner);
  count = 0;
  EXPECT(sterna_held_move(held, outer, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == outer && is_at(held, "pu:1"));
  EXPECT(is_at(sterna_held_thread(thread), "pu:1"));
  EXPECT(sterna_bubble_join(inner) == STERNA_INVALID_ARGUMENT); /* It is joined with the other. */
  EXPECT(sterna_held_move(sterna_held_bubble(outer), inner, STERNA_MOVE_NOW) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("one that it holds"));
  EXPECT(sterna_held_move(held, NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == NULL && is_at(held, "machine:0"));
  EXPECT(sterna_held_move(held, outer, STERNA_MOVE_STAY) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS); /* With the inner one. */
  EXPECT(count == 2);
}

/* Before they run. */
static void test_building(void) {
  sterna_bubble *inner = NULL, *first = NULL, *second = NULL;
  int is_settled = -1;
  count = 0;
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&first) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&second) == STERNA_SUCCESS);
  sterna_thread* thread = NULL;
  EXPECT(sterna_bubble_add_thread(inner, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_bubble(inner);
  EXPECT(sterna_held_move(held, first, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, second, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == second);
  EXPECT(sterna_bubble_destroy(first) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == NULL);
  EXPECT(sterna_bubble_submit(second) == STERNA_SUCCESS);
  /* What does not run starts in one that does. */
  EXPECT(sterna_held_move(held, second, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_held_is_settled(held, &is_settled) == STERNA_SUCCESS && is_settled == 0);
  EXPECT(sterna_held_set_settled(held, 1) == STERNA_SUCCESS);
  EXPECT(sterna_held_is_settled(held, &is_settled) == STERNA_SUCCESS && is_settled == 1);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(second) == STERNA_SUCCESS);
  EXPECT(count == 1);
}

/* What is refused changes nothing: who held it before runs it. */
static void test_refused_building(void) {
  enum { kDeep = 60 };
  sterna_bubble *outer = NULL, *middle = NULL, *inner = NULL, *deep[kDeep];
  sterna_thread* thread = NULL;
  count = 0;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&middle) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, middle) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(middle, inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(middle, NULL, wait_for_go, &thread) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_bubble(middle);
  EXPECT(sterna_held_move(held, inner, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("one that it holds") && holder_of(held) == outer);
  EXPECT(sterna_held_move(held, middle, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(holder_of(held) == outer);
  for (int i = 0; i < kDeep; ++i) {
    EXPECT(sterna_bubble_create(&deep[i]) == STERNA_SUCCESS);
    EXPECT(i == 0 || sterna_bubble_add_bubble(deep[i - 1], deep[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("60 deep") && holder_of(held) == outer);
  EXPECT(sterna_bubble_submit(deep[0]) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(holder_of(held) == outer);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  /* The same rule for what runs. */
  EXPECT(sterna_held_move(held, deep[kDeep - 2], STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("60 deep") && holder_of(held) == outer);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(count == 1);
  EXPECT(sterna_bubble_join(deep[0]) == STERNA_SUCCESS);
}

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

static sterna_thread* waiting;

static void wait_at_barrier(void* argument) {
  waiting = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_barrier(argument, NULL) == STERNA_SUCCESS);
}

static void leave_all(void* argument) {
  (void)argument;
  EXPECT(sterna_held_move(sterna_held_thread(sterna_thread_self()), NULL, STERNA_MOVE_NOW) ==
         STERNA_SUCCESS);
  EXPECT(holder_of(sterna_held_thread(sterna_thread_self())) == NULL);
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
}

/* Who leaves counts no more, at the barrier and for the join; who waits there cannot be moved. */
static void test_leaving(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  sterna_thread* blocker = NULL;
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_at_barrier, bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, NULL, wait_for_go, &blocker) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  sterna_status status = STERNA_SUCCESS;
  for (;;) { /* Until it is there; before, it goes nowhere: its bubble is its bubble. */
    status = sterna_held_move(sterna_held_thread(waiting), bubble, STERNA_MOVE_STAY);
    if (status == STERNA_BUSY) {
      break;
    }
    EXPECT(status == STERNA_SUCCESS);
    sterna_thread_yield();
  }
  EXPECT(has_detail("waits at the barrier"));
  /* The other one leaves: the first need not wait any more. */
  EXPECT(sterna_held_move(sterna_held_thread(blocker), NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  for (int round = 0; round < 20; ++round) { /* Their memory is used again in between. */
    EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_add_thread(bubble, NULL, leave_all, NULL) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS); /* Which does not wait for it. */
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
    EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
}

static void do_nothing(void* argument) {
  (void)argument;
}

static void test_refusals(void) {
  sterna_thread* plain = NULL;
  sterna_bubble* bubble = NULL;
  sterna_bubble* holder = NULL;
  sterna_held both = {NULL, NULL};
  sterna_thread* thread = NULL;
  sterna_bubble* running = start_waiter(&thread, NULL);
  const sterna_held held = sterna_held_thread(thread);
  char few[3];
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(both, bubble, STERNA_MOVE_NOW) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_move(held, bubble, STERNA_MOVE_NOW) == STERNA_BUSY);
  EXPECT(has_detail("goes into a bubble that runs"));
  EXPECT(sterna_held_move(held, running, (sterna_move)7) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_holder(held, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_thread_join(thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("sterna_bubble_join waits for it"));
  EXPECT(sterna_thread_detach(thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_set_place(held, "moon:0") == STERNA_NOT_FOUND);
  EXPECT(has_detail("no place \"moon:0\""));
  EXPECT(sterna_held_begin_at(held, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_held_begin_beside(held, sterna_held_bubble(bubble)) == STERNA_BUSY);
  EXPECT(sterna_held_place(held, few, sizeof few) == STERNA_TRUNCATED);
  EXPECT(sterna_bubble_set_preemptible(running, 0) == STERNA_BUSY);
  EXPECT(sterna_thread_create(NULL, do_nothing, NULL, &plain) == STERNA_SUCCESS);
  EXPECT(sterna_held_holder(sterna_held_thread(plain), &holder) == STERNA_UNSUPPORTED);
  EXPECT(has_detail("outside of bubbles"));
  EXPECT(sterna_thread_join(plain) == STERNA_SUCCESS);
  EXPECT(sterna_held_holder(sterna_held_thread(plain), &holder) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(running) == STERNA_SUCCESS);
}

/* A thread with a place of its own within its bubble. */
static void test_places(void) {
  sterna_thread* thread = NULL;
  sterna_bubble* bubble = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options.place = "moon:1";
  EXPECT(sterna_bubble_add_thread(bubble, &options, wait_for_go, &thread) == STERNA_NOT_FOUND);
  options.place = "pu:1";
  EXPECT(sterna_bubble_add_thread(bubble, &options, wait_for_go, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(is_at(held, "pu:1"));
  EXPECT(sterna_held_begin_at(held, "pu:0") == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:1")); /* What it must not leave bounds where it begins. */
  EXPECT(sterna_held_set_place(held, NULL) == STERNA_SUCCESS);
  EXPECT(is_at(held, "pu:0"));
  EXPECT(sterna_semaphore_release(&go, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  sterna_bubble* holder = NULL;
  sterna_held none = {NULL, NULL};
  EXPECT(sterna_held_holder(none, &holder) == STERNA_NOT_STARTED);
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  /* With more nodes the processors of the places may be those of another. */
  if (sterna_node_count() == 1 && sterna_worker_count() >= 2) {
    test_thread();
    test_stay();
    test_bubble();
    test_places();
  } else {
    puts("skipped: moves between places: they need one node with two processors");
  }
  test_building();
  test_refused_building();
  test_leaving();
  test_refusals();
  test_meddling();
  test_storm("flat");
  test_storm("spread");
  test_storm("gang(slice=1)");
  test_storm("fallback(burst,steal)");
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
