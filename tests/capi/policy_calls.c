/* A policy that calls all that policy.h has for policies, and compares what it gets with what the
 * program around it has set up. Its looks at a tree that sleeps come in phases of the program; then
 * its threads run: put aside and asked for, taken by processors without work, through a slice. */
#include <time.h>

#include "policy_look.h"
#include "sterna/bubble.h"
#include "sterna/place.h"
#include "sterna/stats.h"
#include "sterna/thread.h"

enum { kSecondsMax = 60, kThreads = 3 };
enum { kLookAtRest = 1, kLetAside, kToOneProcessor };

typedef struct {
  char arguments[32];
  int submits, meets, wakes, shakes, grows, leaves, expired, steals;
  int is_open;  /* What is aside may run. */
  int is_thief; /* Idle processors take what waits elsewhere. */
} instance;

static int living;
static instance* now; /* That of the policy that rules. */

static int read_count(const int* count) {
  return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}
static void add_one(int* count) {
  __atomic_fetch_add(count, 1, __ATOMIC_RELEASE);
}

static sterna_status instantiate(void* data, const char* arguments, void** made) {
  if (strcmp(arguments, "refused") == 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  now = calloc(1, sizeof *now);
  EXPECT(now != NULL && data == &living && strlen(arguments) < sizeof now->arguments);
  strcpy(now->arguments, arguments);
  add_one(&living);
  *made = now;
  return STERNA_SUCCESS;
}

static void destroy(void* ended) {
  __atomic_fetch_sub(&living, 1, __ATOMIC_RELEASE);
  free(ended);
}

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  add_one(&((instance*)data)->submits);
  *(outer_entity == NULL ? &outer_entity : &other_entity) = entity;
  sterna_entity_get(view, entity);
  sterna_entity_put(view, entity, sterna_view_domain(view));
}

static int meet(sterna_view* view, sterna_entity* entity, sterna_place here, sterna_place processor,
                void* data) {
  add_one(&((instance*)data)->meets);
  CHECK(sterna_place_inner(view, processor, 0) == STERNA_NO_PLACE);
  CHECK(sterna_place_workers(view, here) >= sterna_place_workers(view, processor));
  CHECK(sterna_entity_place(entity) == here || sterna_entity_holder(entity) == NULL);
  return 0;
}

static int idle(sterna_view* view, sterna_place processor, void* data) {
  instance* const its = data;
  sterna_entity* const aside = sterna_view_at(view, STERNA_PLACE_ASIDE);
  if (its->is_open && aside != NULL) {
    sterna_entity_put(view, aside, sterna_view_domain(view));
    return 1;
  }
  if (its->is_thief && sterna_view_steal(view, processor, STERNA_NO_PLACE)) {
    add_one(&its->steals);
    return 1;
  }
  return 0;
}

static void tick(sterna_view* view, sterna_entity* expired, void* data) {
  if (expired != NULL) {
    CHECK(expired == outer_entity);
    sterna_bubble_gather(view, expired);
    add_one(&((instance*)data)->expired);
  }
}

static void leave(sterna_view* view, sterna_entity* entity, void* data) {
  (void)view, (void)entity;
  add_one(&((instance*)data)->leaves);
}

static void wake(sterna_view* view, sterna_entity* thread, void* data) {
  CHECK(!sterna_entity_is_bubble(thread) && sterna_entity_threads(view, thread) == 1);
  add_one(&((instance*)data)->wakes);
}

static void shake(sterna_view* view, void* data) {
  add_one(&((instance*)data)->shakes);
  for (sterna_entity* top = sterna_view_first(view); top; top = sterna_view_next(view, top)) {
    sterna_bubble_gather(view, top);
    sterna_entity_put(view, top, sterna_view_domain(view));
  }
}

static void grow(sterna_view* view, sterna_entity* entity, void* data) {
  CHECK(sterna_entity_threads(view, entity) >= 2);
  add_one(&((instance*)data)->grows);
}

static void look(sterna_view* view) {
  const sterna_place all = sterna_view_domain(view);
  sterna_entity* const a = sterna_entity_first(outer_entity);
  const int has_two = worker_count >= 2;
  int seen = 0;
  look_at_places(view);
  look_at_entities(view);
  CHECK(sterna_place_browse(view, processor_of(view, 0), STERNA_NO_PLACE, count_place, &seen) ==
        (has_two ? 7 : 0));
  CHECK(!has_two || seen >= 1);
  sterna_bubble_burst(view, outer_entity, all);
  CHECK(sterna_entity_place(a) == all);
  sterna_bubble_gather(view, outer_entity);
  CHECK(sterna_entity_place(a) == STERNA_NO_PLACE);
  sterna_view_set_slice(view, outer_entity, 1);
  sterna_view_set_slice(view, outer_entity, 0); /* Cancelled. */
  sterna_entity_get(view, other_entity);
  sterna_entity_put(view, other_entity, STERNA_PLACE_ASIDE);
}

/* What was put aside is ready there, since its thread has been woken. */
static void let_aside(sterna_view* view, instance* its) {
  sterna_entity* waiting[2] = {NULL, NULL};
  CHECK(sterna_view_at(view, STERNA_PLACE_ASIDE) == other_entity);
  CHECK(sterna_entity_place(other_entity) == STERNA_PLACE_ASIDE);
  CHECK(sterna_entity_ready(view, other_entity) == 1);
  CHECK(sterna_view_next_ready(view, NULL) == other_entity);
  CHECK(sterna_view_next_ready(view, other_entity) == other_entity);
  CHECK(sterna_place_list_waiting(view, STERNA_PLACE_ASIDE, waiting, 2) == 1);
  CHECK(waiting[0] == sterna_entity_first(other_entity) && waiting[1] == NULL);
  its->is_open = 1;
  sterna_view_ask_again(view, sterna_view_domain(view)); /* Else all sleep, for ever. */
}

static void phase(sterna_view* view, uint32_t number, void* data) {
  if (number == kLookAtRest) {
    look(view);
  } else if (number == kLetAside) {
    let_aside(view, data);
  } else {
    CHECK(((instance*)data)->expired == 0);
    sterna_view_set_slice(view, outer_entity, 1000000);
    sterna_entity_put(view, outer_entity, processor_of(view, 0));
    ((instance*)data)->is_thief = 1;
  }
}

static time_t begin;
static int has_seconds_left(void) {
  return time(NULL) < begin + kSecondsMax;
}

static void have_seconds(void* unused) {
  (void)unused;
  EXPECT(has_seconds_left());
}

/* Runs until the policy has heard of a slice, and idle processors have taken something. */
static void compute_after_go(void* argument) {
  wait_for_go(argument);
  while (has_seconds_left() &&
         (read_count(&now->expired) == 0 || (worker_count >= 2 && read_count(&now->steals) == 0))) {
    sterna_thread_yield();
  }
}

static sterna_semaphore go_aside = STERNA_SEMAPHORE_INIT;
static void wait_aside(void* unused) {
  (void)unused;
  EXPECT(sterna_semaphore_release(&here, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(&go_aside, STERNA_FOREVER) == STERNA_SUCCESS);
}

/* Until so many threads of it wait for a processor, and none runs. */
static void wait_until(sterna_bubble* bubble, uint32_t ready) {
  sterna_held_stats stats = {.size_bytes = sizeof stats};
  do {
    EXPECT(sterna_held_query(sterna_held_bubble(bubble), &stats) == STERNA_SUCCESS);
    EXPECT(has_seconds_left());
  } while (stats.ready != ready || stats.running != 0);
}

static void enter_phase(uint32_t number) {
  EXPECT(sterna_bubble_phase(number) == STERNA_SUCCESS);
  EXPECT(failed_line == 0);
}

static void add_thread(sterna_bubble* bubble, uint32_t load, sterna_thread_function function) {
  static sterna_thread* threads[kThreads];
  static int n;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.load = load;
  EXPECT(sterna_bubble_add_thread(bubble, &options, function, &threads[n]) == STERNA_SUCCESS);
  n += function == compute_after_go;
}

/* The name of the processor of the first worker. */
static const char* first_processor(void) {
  static sterna_place_info infos[512];
  size_t n = 0;
  infos[0].size_bytes = sizeof *infos;
  EXPECT(sterna_place_list(infos, 512, &n) == STERNA_SUCCESS && n <= 512);
  for (size_t i = 0; i < n; ++i) {
    if (strncmp(infos[i].name, "pu:", 3) == 0 && infos[i].workers != 0) {
      return infos[i].name;
    }
  }
  return NULL;
}

/* A policy that is named twice has two instances, and one that refuses does not rule. */
static void test_instances(const sterna_policy* policy) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.policy = "fallback(all(first),all(second))";
  EXPECT(sterna_policy_register(policy) == STERNA_SUCCESS);
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  worker_count = sterna_worker_count();
  EXPECT(living == 2 && strcmp(now->arguments, "second") == 0);
  EXPECT(sterna_policy_set("all(refused)") == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("policy all refuses to rule with \"refused\""));
  EXPECT(living == 2 && sterna_policy_set("all") == STERNA_SUCCESS);
  EXPECT(living == 1 && now->arguments[0] == 0 && now->shakes == 1);
}

static sterna_bubble *outer, *other;

static void start_bubbles(void) {
  sterna_bubble* inner = NULL;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_create(&other) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_level(outer, 1) == STERNA_SUCCESS);
  add_thread(outer, 5, compute_after_go);
  add_thread(outer, 1, compute_after_go);
  EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  add_thread(inner, 1, compute_after_go);
  add_thread(other, 1, wait_aside);
  EXPECT(sterna_held_set_settled(sterna_held_bubble(other), 1) == STERNA_SUCCESS);
  EXPECT(sterna_held_set_place(sterna_held_bubble(other), first_processor()) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(other) == STERNA_SUCCESS);
  EXPECT(sterna_held_set_attribute(sterna_held_bubble(inner), 2, 70) == STERNA_SUCCESS);
  EXPECT(now->submits == 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  wait_until(outer, 0);
  wait_until(other, 0);
}

/* Ready and aside it runs when the policy tells idle processors to ask, which all sleep by then. */
static void test_aside(void) {
  EXPECT(sterna_semaphore_release(&go_aside, 1) == STERNA_SUCCESS);
  wait_until(other, 1);
  EXPECT(sterna_thread_sleep(20000000) == STERNA_SUCCESS);
  wait_until(other, 1);
  enter_phase(kLetAside);
  EXPECT(sterna_bubble_join(other) == STERNA_SUCCESS);
}

static void test_run(void) {
  const int wakes = read_count(&now->wakes);
  enter_phase(kToOneProcessor);
  EXPECT(sterna_semaphore_release(&go, kThreads) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(count == kThreads);
  EXPECT(now->wakes >= wakes + kThreads);
  EXPECT(now->expired == 1); /* Gathered it has no slice any more. */
  EXPECT(now->meets >= 1 && now->leaves >= 2 + 1 + kThreads + 1);
  EXPECT(worker_count == 1 || now->steals >= 1);
}

/* Its children are held by a bubble beside it, so that the bubble around both grows. */
static void have_children(void* unused) {
  sterna_thread* children[4];
  (void)unused;
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_create(NULL, have_seconds, NULL, &children[i]) == STERNA_SUCCESS);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_join(children[i]) == STERNA_SUCCESS);
  }
}

static void test_growth(void) {
  sterna_bubble* bubble = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.auto_bubbles = STERNA_AUTO_BUBBLES_FILIATION;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_thread(bubble, &options, have_children, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(now->grows >= 1);
}

int main(void) {
  const sterna_policy policy = {.size_bytes = sizeof policy,
                                .name = "all",
                                .summary = "calls everything",
                                .data = &living,
                                .tick_ns = 100000,
                                .submit = submit,
                                .meet = meet,
                                .idle = idle,
                                .tick = tick,
                                .leave = leave,
                                .arguments = "WORD",
                                .instantiate = instantiate,
                                .destroy = destroy,
                                .wake = wake,
                                .shake = shake,
                                .phase = phase,
                                .grow = grow};
  begin = time(NULL);
  test_instances(&policy);
  start_bubbles();
  enter_phase(kLookAtRest);
  test_aside();
  test_run();
  test_growth();
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  EXPECT(now->shakes == 2);
  EXPECT(sterna_policy_set("flat") == STERNA_SUCCESS);
  EXPECT(living == 0 && failed_line == 0);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
