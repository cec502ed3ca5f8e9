/* Lives of threads and bubbles as they come from a seed: trees of bubbles whose threads yield,
 * sleep, give birth, move, meet, take part in loops and plant seeds, while others freeze, cancel and
 * move them, change policies, take workers away and stop all scheduling. Every call says SUCCESS or
 * one of the reasons that its header gives for that moment; whatever was begun ends.
 *
 * usage: bubble_random SEED ROUNDS */
#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/held.h"
#include "sterna/loop.h"
#include "sterna/policy.h"
#include "sterna/seed.h"
#include "sterna/sterna.h"
#include "sterna/stats.h"
#include "sterna/thread.h"

enum { kHouses = 3, kDrivers = 3, kHandles = 30, kDeepest = 3 };

/* Bits of statuses that are right, too, beside SUCCESS. */
#define OR(name) (1u << STERNA_##name)
#define ALLOW(call, others)                                                     \
  do {                                                                          \
    const sterna_status status_ = (call);                                       \
    if (status_ != STERNA_SUCCESS && ((others) >> status_ & 1u) == 0) {         \
      fprintf(stderr, "%s: %s\n", #call, sterna_status_text(status_));          \
    }                                                                           \
    EXPECT(status_ == STERNA_SUCCESS || ((others) >> status_ & 1u) != 0);       \
  } while (0)

typedef uint64_t chance;
static unsigned below(chance* random, unsigned bound) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((*random >> 33) % bound);
}

static const char* const policies[] = {"flat",  "spread", "burst",  "gang",
                                       "steal", "cache",  "memory", "fallback(spread,steal)",
                                       "gang(steal)", "parts(pu,steal)", "choice(steal,gang)",
                                       "priorities(normal=steal,batch=flat)"};
enum { kPolicies = sizeof policies / sizeof *policies };

static sterna_bubble* houses[kHouses]; /* They run all the time; whoever wants moves in. */
static int born, died;                 /* Atomic. Of threads that have begun. */
static int visitors, are_closed;       /* Atomic. Of the houses: see visit(). */

struct life {
  chance random;
  int depth;
  int is_visitor;
};

static struct life* new_life(chance* random, int depth) {
  struct life* const life = malloc(sizeof *life);
  EXPECT(life != NULL);
  life->random = *random ^ 0x9e3779b97f4a7c15u;
  life->depth = depth;
  life->is_visitor = 0;
  (void)below(random, 2);
  return life;
}

static sterna_bubble* a_house(chance* random) { return houses[below(random, kHouses)]; }
static sterna_held myself(void) { return sterna_held_thread(sterna_thread_self()); }

/* Who joins a house frees it, so its handle is used between the two only, and not once the houses
 * are closed. */
static void leave(struct life* life) {
  life->is_visitor = 0;
  __atomic_fetch_sub(&visitors, 1, __ATOMIC_SEQ_CST);
}
static int visit(struct life* life) {
  __atomic_fetch_add(&visitors, 1, __ATOMIC_SEQ_CST);
  life->is_visitor = 1;
  if (__atomic_load_n(&are_closed, __ATOMIC_SEQ_CST) == 0) return 1;
  leave(life);
  return 0;
}
static void close_houses(void) {
  __atomic_store_n(&are_closed, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&visitors, __ATOMIC_SEQ_CST) != 0) {
    EXPECT(sterna_thread_yield() == STERNA_SUCCESS);
  }
}

static void end_life(void* argument) {
  struct life* const life = argument;
  if (life->is_visitor) leave(life); /* It was cancelled there. */
  __atomic_fetch_add(&died, 1, __ATOMIC_RELAXED);
  free(life);
}
static void live(void* life);

static void bear_in_a_house(chance* random, int depth) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  struct life* const life = new_life(random, depth + 1);
  options.bubble = a_house(random);
  options.is_detached = 1;
  options.is_cancellable = (uint8_t)below(random, 2);
  const sterna_status status = sterna_thread_create(&options, live, life, NULL);
  if (status == STERNA_BUSY) free(life); /* It is being joined: the end is near. */
  EXPECT(status == STERNA_SUCCESS || status == STERNA_BUSY);
}

static void bear_and_join(chance* random, int depth) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_thread* child = NULL;
  options.auto_bubbles = below(random, 3);
  EXPECT(sterna_thread_create(&options, live, new_life(random, depth + 1), &child) ==
         STERNA_SUCCESS);
  ALLOW(sterna_thread_join(child), OR(CANCELLED));
}

static void meet_my_bubble(int depth) {
  sterna_bubble* mine = NULL;
  ALLOW(sterna_held_holder(myself(), &mine), OR(INVALID_ARGUMENT) | OR(UNSUPPORTED));
  if (mine != NULL && depth == 0) ALLOW(sterna_bubble_barrier(mine, NULL), OR(INVALID_ARGUMENT));
}

static void one_turn(uint64_t begin, uint64_t end, void* argument) {
  (void)begin, (void)end, (void)argument;
  (void)sterna_thread_yield();
}
static void count_up(void* count) { ++*(int*)count; }

static void sow(void) {
  sterna_seed seed;
  int count = 0;
  EXPECT(sterna_seed_plant(&seed, count_up, &count) == STERNA_SUCCESS);
  ALLOW(sterna_seed_join(&seed), OR(CANCELLED));
}

static void look_at(sterna_bubble* bubble) {
  sterna_held_stats stats = {0};
  (void)sterna_held_query(sterna_held_bubble(bubble), &stats);
}

static void do_something_in_town(struct life* life, unsigned what, sterna_move move) {
  const unsigned homeless = OR(BUSY) | OR(INVALID_ARGUMENT) | OR(UNSUPPORTED);
  if (!visit(life)) return;
  switch (what) {
    case 2: ALLOW(sterna_held_move(myself(), a_house(&life->random), move), homeless); break;
    case 6: if (life->depth < kDeepest) bear_in_a_house(&life->random, life->depth); break;
    default: look_at(a_house(&life->random));
  }
  leave(life);
}

static void do_something(struct life* life) {
  const unsigned homeless = OR(BUSY) | OR(INVALID_ARGUMENT) | OR(UNSUPPORTED);
  chance* const random = &life->random;
  const int depth = life->depth;
  const sterna_move move = below(random, 2) != 0 ? STERNA_MOVE_NOW : STERNA_MOVE_STAY;
  const unsigned what = below(random, 14);
  switch (what) {
    case 0: ALLOW(sterna_thread_sleep(1000 + below(random, 50000)), OR(CANCELLED)); break;
    case 1: ALLOW(sterna_thread_park(below(random, 50000)), OR(CANCELLED) | OR(TIMED_OUT)); break;
    case 2: case 6: case 10: do_something_in_town(life, what, move); break;
    case 3: ALLOW(sterna_held_move(myself(), NULL, STERNA_MOVE_NOW), homeless); break;
    case 4:
      ALLOW(sterna_thread_set_priority(sterna_thread_self(), below(random, 2) != 0
                                                                 ? STERNA_PRIORITY_NORMAL
                                                                 : STERNA_PRIORITY_BATCH), 0);
      break;
    case 5: meet_my_bubble(depth); break;
    case 7: if (depth < kDeepest) bear_and_join(random, depth); break;
    case 8: sow(); break;
    case 9: ALLOW(sterna_loop_run(0, 8, NULL, one_turn, NULL), OR(CANCELLED)); break;
    case 11:
      ALLOW(sterna_thread_set_load(sterna_thread_self(), 1 + below(random, 5)), OR(UNSUPPORTED));
      break;
    case 12: (void)sterna_bubble_shake(); break;
    default: ALLOW(sterna_thread_yield(), OR(CANCELLED));
  }
}

static void live(void* argument) {
  struct life* const life = argument;
  sterna_cleanup cleanup;
  __atomic_fetch_add(&born, 1, __ATOMIC_RELAXED);
  EXPECT(sterna_thread_cleanup_push(&cleanup, end_life, life) == STERNA_SUCCESS);
  for (unsigned left = 1 + below(&life->random, 6); left != 0; --left) do_something(life);
  EXPECT(sterna_thread_cleanup_pop(1) == STERNA_SUCCESS);
}

struct family {
  sterna_bubble* bubble;
  sterna_thread* threads[kHandles];
  unsigned count;
};

static void add_one(chance* random, sterna_bubble* bubble, struct family* family) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  struct life* const life = new_life(random, 0);
  options.bubble = bubble;
  options.is_cancellable = (uint8_t)below(random, 2);
  options.load = below(random, 3);
  options.stack_bytes = below(random, 4) == 0 ? 200000 : 0;
  options.place = below(random, 8) == 0 ? "pu:0" : below(random, 8) == 0 ? "machine:0" : NULL;
  if (below(random, 4) == 0) options.priority = STERNA_PRIORITY_BATCH;
  const unsigned kind = below(random, 3);
  if (kind == 0 && family->count < kHandles) {
    options.is_frozen = below(random, 4) == 0;
    EXPECT(sterna_thread_create(&options, live, life, &family->threads[family->count++]) ==
           STERNA_SUCCESS);
  } else if (kind == 1) {
    options.is_detached = 1;
    EXPECT(sterna_thread_create(&options, live, life, NULL) == STERNA_SUCCESS);
  } else {
    EXPECT(sterna_bubble_add_thread(bubble, &options, live, life) == STERNA_SUCCESS);
  }
}

static void fill(chance* random, sterna_bubble* bubble, int depth, struct family* family) {
  if (below(random, 3) == 0) {
    EXPECT(sterna_bubble_set_priority(bubble, STERNA_PRIORITY_BATCH) == STERNA_SUCCESS);
  }
  if (below(random, 3) == 0) {
    EXPECT(sterna_bubble_set_slice(bubble, 1000 * below(random, 2000)) == STERNA_SUCCESS);
  }
  if (below(random, 4) == 0) {
    EXPECT(sterna_bubble_set_level(bubble, below(random, 4)) == STERNA_SUCCESS);
  }
  for (unsigned left = 1 + below(random, 4); left != 0; --left) add_one(random, bubble, family);
  for (unsigned left = depth < kDeepest ? below(random, 3) : 0; left != 0; --left) {
    sterna_bubble* inner = NULL;
    EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
    fill(random, inner, depth + 1, family);
    EXPECT(sterna_bubble_add_bubble(bubble, inner) == STERNA_SUCCESS);
  }
}

static void freeze_for_a_while(sterna_thread* thread, uint64_t patience_ns) {
  ALLOW(sterna_thread_freeze(&thread, 1, patience_ns), OR(TIMED_OUT) | OR(INVALID_ARGUMENT));
  (void)sterna_thread_yield();
  ALLOW(sterna_thread_unfreeze(thread), OR(INVALID_ARGUMENT) | OR(REFUSED));
}

static void take_a_worker_away(void) {
  const unsigned refused = OR(REFUSED) | OR(BUSY) | OR(INVALID_ARGUMENT);
  ALLOW(sterna_worker_disable(1), refused);
  (void)sterna_thread_yield();
  ALLOW(sterna_worker_enable(1), refused);
}

static void stop_all(uint64_t patience_ns) {
  const sterna_status status = sterna_scheduling_freeze(patience_ns);
  EXPECT(status == STERNA_SUCCESS || status == STERNA_BUSY || status == STERNA_TIMED_OUT);
  if (status != STERNA_BUSY) ALLOW(sterna_scheduling_unfreeze(), OR(REFUSED));
}

/* To one of the handles, which may have ended. */
static void disturb_one(chance* random, sterna_thread* thread) {
  const unsigned gone = OR(REFUSED) | OR(INVALID_ARGUMENT) | OR(NOT_FOUND);
  switch (below(random, 4)) {
    case 0: ALLOW(sterna_thread_cancel(thread), gone); break;
    case 1: freeze_for_a_while(thread, below(random, 200000)); break;
    case 2: ALLOW(sterna_thread_set_priority(thread, STERNA_PRIORITY_REAL_TIME), gone); break;
    default:
      ALLOW(sterna_held_move(sterna_held_thread(thread), a_house(random), STERNA_MOVE_STAY),
            gone | OR(BUSY) | OR(UNSUPPORTED) | OR(CLOSED));
  }
}

static void disturb(chance* random, struct family* family) {
  const sterna_held held = sterna_held_bubble(family->bubble);
  struct life* life = NULL;
  switch (below(random, 7)) {
    case 0: ALLOW(sterna_held_move(held, a_house(random), STERNA_MOVE_NOW), OR(BUSY)); break;
    case 1: ALLOW(sterna_policy_set(policies[below(random, kPolicies)]), 0); break;
    case 2: take_a_worker_away(); break;
    case 3: stop_all(below(random, 100000)); break;
    case 4:
      life = new_life(random, 1);
      EXPECT(sterna_bubble_add_thread(family->bubble, NULL, live, life) == STERNA_SUCCESS);
      break;
    case 5:
      ALLOW(sterna_held_set_place(held, below(random, 2) != 0 ? "pu:1" : NULL), OR(NOT_FOUND));
      break;
    default:
      if (family->count != 0) disturb_one(random, family->threads[below(random, family->count)]);
  }
}

static void end_family(struct family* family) {
  sterna_bubble* house = NULL;
  for (unsigned i = 0; i < family->count; ++i) (void)sterna_thread_unfreeze(family->threads[i]);
  for (unsigned i = 0; i < family->count; ++i) {
    ALLOW(sterna_thread_join(family->threads[i]), OR(CANCELLED));
  }
  EXPECT(sterna_held_holder(sterna_held_bubble(family->bubble), &house) == STERNA_SUCCESS);
  if (house != NULL) {
    EXPECT(sterna_held_move(sterna_held_bubble(family->bubble), NULL, STERNA_MOVE_NOW) ==
           STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_join(family->bubble) == STERNA_SUCCESS);
}

static int rounds;
static void drive(void* random_begin) {
  chance random = *(chance*)random_begin;
  for (int round = 0; round < rounds; ++round) {
    struct family family = {0};
    EXPECT(sterna_bubble_create(&family.bubble) == STERNA_SUCCESS);
    fill(&random, family.bubble, 0, &family);
    EXPECT(sterna_bubble_submit(family.bubble) == STERNA_SUCCESS);
    for (unsigned left = below(&random, 8); left != 0; --left) disturb(&random, &family);
    end_family(&family);
  }
}

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  sterna_thread* drivers[kDrivers];
  chance chances[kDrivers];
  rounds = argc > 2 ? atoi(argv[2]) : 40;
  options.workers = 2 + seed % 3;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  for (int i = 0; i < kHouses; ++i) {
    EXPECT(sterna_bubble_create(&houses[i]) == STERNA_SUCCESS);
    EXPECT(sterna_bubble_submit(houses[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kDrivers; ++i) {
    chances[i] = seed * 77u + (unsigned)i * 1234567u + 1;
    EXPECT(sterna_thread_create(NULL, drive, &chances[i], &drivers[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < kDrivers; ++i) EXPECT(sterna_thread_join(drivers[i]) == STERNA_SUCCESS);
  close_houses();
  for (int i = 0; i < kHouses && seed % 2 != 0; ++i) { /* Else sterna_stop does. */
    EXPECT(sterna_bubble_join(houses[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  EXPECT(born == died);
  puts("No Errors");
  return 0;
}
