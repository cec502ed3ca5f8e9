/* Threads of bubbles that have a handle, and the options of any thread. */
#include "held.h"
#include "sterna/key.h"
#include "sterna/stats.h"

enum { kMs = 1000000 };

static sterna_bubble* make_bubble(void) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  return bubble;
}

static sterna_thread_options in_bubble(sterna_bubble* bubble) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.bubble = bubble;
  return options;
}

static sterna_thread* create(const sterna_thread_options* options, sterna_thread_function function,
                             void* argument) {
  sterna_thread* thread = NULL;
  EXPECT(sterna_thread_create(options, function, argument, &thread) == STERNA_SUCCESS);
  EXPECT(thread != NULL);
  return thread;
}

static void run_bubble(sterna_bubble* bubble) {
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

/* Of the two that the machines of these tests have at least; a node of a job may have one. */
static int is_ours(const char* place) {
  sterna_bubble* bubble = make_bubble();
  const int is_set = sterna_held_set_place(sterna_held_bubble(bubble), place) == STERNA_SUCCESS;
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  return is_set;
}

static const char* a_processor(void) {
  return is_ours("pu:0") ? "pu:0" : "pu:1";
}

static void count_up(void* argument) {
  __atomic_fetch_add((int*)argument, 1, __ATOMIC_RELAXED);
}

/* The handle is of the thread that runs, and is joined once, like any. */
static sterna_thread* seen_self; /* Atomic. */
static void see_self(void* argument) {
  (void)argument;
  __atomic_store_n(&seen_self, sterna_thread_self(), __ATOMIC_RELEASE);
}

static void test_join(void) {
  sterna_bubble* bubble = make_bubble();
  const sterna_thread_options options = in_bubble(bubble);
  sterna_thread* thread = create(&options, see_self, NULL);
  EXPECT(sterna_thread_join_for(thread, kMs) == STERNA_TIMED_OUT);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(__atomic_load_n(&seen_self, __ATOMIC_ACQUIRE) == thread);
  EXPECT(sterna_thread_join(thread) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("is gone"));
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

/* Calls on a thread whose bubble is gone: it is still its owner's to join, or to detach. */
static void test_handle_outlives_bubble(void) {
  int ran = 0;
  char name[8];
  uint32_t priority = 0;
  sterna_bubble* holder = NULL;
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  options.name = "late";
  sterna_thread* joined = create(&options, count_up, &ran);
  sterna_thread* detached = create(&options, count_up, &ran);
  run_bubble(bubble);
  EXPECT(ran == 2);
  EXPECT(sterna_thread_name(joined, name, sizeof name) == STERNA_SUCCESS);
  EXPECT(strcmp(name, "late") == 0);
  EXPECT(sterna_thread_set_priority(joined, STERNA_PRIORITY_BATCH) == STERNA_SUCCESS);
  EXPECT(sterna_thread_priority(joined, &priority) == STERNA_SUCCESS);
  EXPECT(sterna_thread_unpark(joined) == STERNA_SUCCESS);
  EXPECT(sterna_held_holder(sterna_held_thread(joined), &holder) == STERNA_REFUSED);
  EXPECT(sterna_thread_set_load(joined, 3) == STERNA_REFUSED);
  EXPECT(sterna_thread_join(joined) == STERNA_SUCCESS);
  EXPECT(sterna_thread_detach(detached) == STERNA_SUCCESS);
  EXPECT(sterna_thread_detach(detached) == STERNA_INVALID_ARGUMENT);
}

/* A bubble waits for all of an end, also of those that it does not free. */
static sterna_key key;
static void take_time(void* ran) {
  sterna_thread_sleep(3 * kMs);
  count_up(ran);
}
static void have_value(void* ran) {
  EXPECT(sterna_key_set(key, ran) == STERNA_SUCCESS);
}

static void test_last_destructors(void) {
  int ran = 0;
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  EXPECT(sterna_key_create(&key, take_time) == STERNA_SUCCESS);
  sterna_thread* thread = create(&options, have_value, &ran);
  options.is_detached = 1;
  EXPECT(sterna_bubble_add_thread(bubble, &options, have_value, &ran) == STERNA_SUCCESS);
  run_bubble(bubble);
  EXPECT(ran == 2);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_key_delete(key) == STERNA_SUCCESS);
}

/* Detached before it starts, by its options or by its handle: the bubble waits all the same. */
static void test_detached(void) {
  int ran = 0;
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  EXPECT(sterna_thread_detach(create(&options, count_up, &ran)) == STERNA_SUCCESS);
  options.is_detached = 1;
  EXPECT(sterna_thread_join(create(&options, count_up, &ran)) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("detached"));
  EXPECT(sterna_thread_create(&options, count_up, &ran, NULL) == STERNA_SUCCESS);
  run_bubble(bubble);
  EXPECT(ran == 3);
}

static void park_for_ever(void* argument) {
  *(sterna_thread**)argument = sterna_thread_self();
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  for (;;) {
    (void)sterna_thread_park(STERNA_FOREVER);
  }
}

/* Cancelled while it waits, before it runs, and refused where that was not asked for. */
static void test_cancelled(void) {
  sterna_thread *selves[2] = {NULL, NULL}, *threads[2];
  sterna_thread* plain = NULL;
  int ran = 0;
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  plain = create(&options, count_up, &ran);
  options.is_cancellable = 1;
  for (int i = 0; i < 2; ++i) {
    threads[i] = create(&options, park_for_ever, &selves[i]);
  }
  EXPECT(sterna_thread_cancel(plain) == STERNA_REFUSED);
  EXPECT(sterna_thread_cancel(threads[1]) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[1]) == STERNA_CANCELLED);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cancel(threads[0]) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(threads[0]) == STERNA_CANCELLED);
  EXPECT(sterna_thread_join(plain) == STERNA_SUCCESS && ran == 1);
  /* The second one may have been stopped at its semaphore, or after it. */
  while (sterna_semaphore_try_acquire(&here) == STERNA_SUCCESS) {
  }
}

static void test_frozen(void) {
  int ran = 0;
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  sterna_thread* later = create(&options, count_up, &ran);
  options.is_frozen = 1;
  sterna_thread* frozen = create(&options, count_up, &ran);
  EXPECT(sterna_thread_freeze(&later, 1, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join_for(frozen, 5 * kMs) == STERNA_TIMED_OUT);
  EXPECT(__atomic_load_n(&ran, __ATOMIC_RELAXED) == 0);
  EXPECT(sterna_thread_unfreeze(frozen) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(frozen) == STERNA_SUCCESS && ran == 1);
  EXPECT(sterna_thread_unfreeze(later) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS && ran == 2);
  EXPECT(sterna_thread_join(later) == STERNA_SUCCESS);
}

static void note_result(void* result) {
  *(sterna_status*)((void**)result)[1] = sterna_thread_join(((void**)result)[0]);
}

/* Its threads end without having run; their stacks are their owner's again. */
static void test_destroyed(void) {
  int ran = 0;
  void* stack = NULL;
  sterna_status result = STERNA_SUCCESS;
  sterna_bubble* outer = make_bubble();
  sterna_bubble* inner = make_bubble();
  EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  EXPECT(sterna_stack_create(100000, &stack, NULL) == STERNA_SUCCESS);
  sterna_thread_options options = in_bubble(inner);
  options.has_own_locals = 1;
  void* joined[2] = {create(&options, count_up, &ran), &result};
  sterna_thread* joiner = create(NULL, note_result, joined);
  options.has_own_locals = 0;
  EXPECT(sterna_thread_detach(create(&options, count_up, &ran)) == STERNA_SUCCESS);
  sterna_thread* kept = create(&options, count_up, &ran);
  options.stack = stack;
  EXPECT(sterna_bubble_add_thread(inner, &options, count_up, &ran) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(inner, &options, count_up, &ran) == STERNA_BUSY);
  EXPECT(has_detail("which was not joined"));
  EXPECT(sterna_thread_join_for(joiner, kMs) == STERNA_TIMED_OUT);
  EXPECT(sterna_bubble_destroy(outer) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(joiner) == STERNA_SUCCESS && result == STERNA_CANCELLED);
  EXPECT(sterna_thread_set_priority(kept, STERNA_PRIORITY_BATCH) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(kept) == STERNA_CANCELLED);
  EXPECT(sterna_thread_join(kept) == STERNA_INVALID_ARGUMENT);
  EXPECT(ran == 0);
  EXPECT(sterna_stack_destroy(stack) == STERNA_SUCCESS);
}

static int looked; /* Atomic. */
static size_t stack_bytes; /* More than was asked for, with sanitizers by far. */
static void look_around(void* argument) {
  sterna_thread_info infos[64];
  size_t found = 0;
  char* const stack = argument;
  char here_now;
  if (stack != NULL) { /* One in a stack of the program's. */
    EXPECT(&here_now >= stack && &here_now < stack + stack_bytes);
    return;
  }
  EXPECT(sterna_thread_list(infos, 64, &found) == STERNA_SUCCESS && found <= 64);
  for (size_t i = 0; i < found; ++i) {
    if (infos[i].thread == sterna_thread_self()) {
      EXPECT(infos[i].priority == STERNA_PRIORITY_REAL_TIME && infos[i].is_in_bubble == 1);
      EXPECT(infos[i].is_migratable == 1);
      EXPECT(strcmp(infos[i].name, "bound") != 0 || infos[i].worker == 1);
      __atomic_fetch_add(&looked, 1, __ATOMIC_RELAXED);
    }
  }
}

/* What a thread of a bubble could not have before. */
static void test_options(void) {
  void *stack = NULL, *base = NULL;
  size_t bytes = 0, guarded = 0;
  uint32_t mode = 0;
  char place[32];
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  options.stack_bytes = 70000;
  sterna_thread* plain = create(&options, look_around, NULL);
  EXPECT(sterna_thread_stack(plain, &base, &bytes, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(plain) == STERNA_CANCELLED);
  bubble = make_bubble();
  options = in_bubble(bubble);
  options.name = "full";
  options.priority = STERNA_PRIORITY_REAL_TIME;
  options.preemption = STERNA_PREEMPTION_NONE;
  options.is_migratable = 1;
  EXPECT(sterna_stack_create(100000, &stack, &stack_bytes) == STERNA_SUCCESS);
  options.stack = stack;
  sterna_thread* on_stack = create(&options, look_around, stack);
  EXPECT(sterna_thread_create(&options, look_around, stack, &plain) == STERNA_BUSY);
  options.stack = NULL;
  options.stack_bytes = 70000;
  options.guard_bytes = 8192;
  options.worker = 1;
  sterna_thread* guards = create(&options, look_around, NULL);
  EXPECT(sterna_thread_stack(guards, &base, &guarded, NULL) == STERNA_SUCCESS);
  EXPECT(guarded >= 70000 && bytes - guarded > 6000); /* Slots differ by up to 2 KiB. */
  EXPECT(sterna_thread_preemption(guards, &mode) == STERNA_SUCCESS);
  EXPECT(mode == STERNA_PREEMPTION_NONE);
  options.is_bound = 1;
  options.name = "bound";
  const sterna_status bound = sterna_bubble_add_thread(bubble, &options, look_around, NULL);
  EXPECT(bound == STERNA_SUCCESS ||
         (bound == STERNA_REFUSED && has_detail("shares its processor")));
  EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_held_place(sterna_held_thread(guards), place, sizeof place) == STERNA_SUCCESS);
  EXPECT(strncmp(place, "pu:", 3) == 0); /* It begins there. */
  EXPECT(sterna_scheduling_unfreeze() == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(looked == (bound == STERNA_SUCCESS ? 2 : 1));
  EXPECT(sterna_stack_destroy(stack) == STERNA_BUSY);
  EXPECT(sterna_thread_join(on_stack) == STERNA_SUCCESS);
  EXPECT(sterna_stack_destroy(stack) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(guards) == STERNA_SUCCESS);
}

static void test_refused(void) {
  sterna_thread* thread = NULL;
  sterna_bubble* bubble = make_bubble();
  sterna_bubble* other = make_bubble();
  sterna_thread_options options = in_bubble(other);
  EXPECT(sterna_bubble_add_thread(bubble, &options, count_up, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("name another bubble"));
  options.bubble = bubble;
  options.priority = STERNA_PRIORITY_MAX + 1;
  EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  options = in_bubble(bubble);
  options.place = "moon:0";
  EXPECT(sterna_thread_create(&options, count_up, NULL, &thread) == STERNA_NOT_FOUND);
  EXPECT(thread == NULL);
  EXPECT(sterna_bubble_destroy(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(other) == STERNA_SUCCESS);
}

/* Before it runs it goes from bubble to bubble, also into one that runs, where it starts. */
static void test_moves(void) {
  sterna_thread* waiter = NULL;
  int ran = 0;
  sterna_bubble* first = make_bubble();
  sterna_bubble* second = make_bubble();
  sterna_bubble* running = start_waiter(&waiter, NULL);
  sterna_thread_options options = in_bubble(first);
  sterna_thread* thread = create(&options, count_up, &ran);
  sterna_thread* guest = create(&options, wait_for_go, &waiter);
  const sterna_held held = sterna_held_thread(thread);
  EXPECT(sterna_held_begin_at(held, a_processor()) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(held, NULL, STERNA_MOVE_NOW) == STERNA_BUSY);
  EXPECT(has_detail("does not run yet"));
  EXPECT(sterna_held_move(held, second, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(holder_of(held) == second);
  EXPECT(sterna_held_move(held, running, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS && ran == 1);
  /* Out of all bubbles it is still the owner's of its handle. */
  EXPECT(sterna_bubble_submit(first) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_held_move(sterna_held_thread(guest), NULL, STERNA_MOVE_NOW) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(first) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(&go, 2) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(guest) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(running) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_destroy(second) == STERNA_SUCCESS);
}

/* In the order of an urgent and a patient one, on one processor that they share. A node that has but
 * one has both workers there: each would take one of the threads, and the system say which goes first. */
static int order[2], order_count;
static void note_turn(void* argument) {
  order[__atomic_fetch_add(&order_count, 1, __ATOMIC_RELAXED)] = (int)(size_t)argument;
}

static void test_priorities(void) {
  const int is_shared = !is_ours("pu:0") || !is_ours("pu:1");
  if (is_shared) {
    EXPECT(sterna_worker_disable(1) == STERNA_SUCCESS);
  }
  sterna_bubble* bubble = make_bubble();
  sterna_thread_options options = in_bubble(bubble);
  EXPECT(sterna_held_set_place(sterna_held_bubble(bubble), a_processor()) == STERNA_SUCCESS);
  options.priority = STERNA_PRIORITY_BATCH;
  sterna_thread* patient = create(&options, note_turn, (void*)1);
  options.priority = STERNA_PRIORITY_REAL_TIME;
  sterna_thread* urgent = create(&options, note_turn, (void*)2);
  EXPECT(sterna_scheduling_freeze(STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_scheduling_unfreeze() == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(patient) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(urgent) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(order[0] == 2 && order[1] == 1);
  if (is_shared) {
    EXPECT(sterna_worker_enable(1) == STERNA_SUCCESS);
  }
}

int main(void) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_join();
  test_handle_outlives_bubble();
  test_last_destructors();
  test_detached();
  test_cancelled();
  test_frozen();
  test_destroyed();
  test_options();
  test_refused();
  test_moves();
  test_priorities();
  /* What was never submitted keeps nobody from leaving. */
  sterna_thread_options late = in_bubble(make_bubble());
  (void)create(&late, see_self, NULL);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
