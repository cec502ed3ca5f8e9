/* Load, attributes and statistics of threads and bubbles: what the program says is what sums, and
 * what policies, its own too, place by. */
#include "sterna/stats.h"

#include "held.h"
#include "sterna/policy.h"

static sterna_thread* threads[8];

/* A bubble of threads that wait for `go`, with these loads. */
static sterna_bubble* start(const uint32_t* loads, int n) {
  sterna_bubble* bubble = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  for (int i = 0; i < n; ++i) {
    options.load = loads[i];
    EXPECT(sterna_bubble_add_thread(bubble, &options, wait_for_go, &threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  for (int i = 0; i < n; ++i) {
    EXPECT(sterna_semaphore_acquire(&here, STERNA_FOREVER) == STERNA_SUCCESS);
  }
  return bubble;
}

static void end(sterna_bubble* bubble, uint32_t n) {
  EXPECT(sterna_semaphore_release(&go, n) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
}

static sterna_held_stats query(sterna_held held) {
  sterna_held_stats stats;
  stats.size_bytes = sizeof stats;
  EXPECT(sterna_held_query(held, &stats) == STERNA_SUCCESS);
  return stats;
}

/* Loads of the threads that are planned on that processor. */
static uint64_t load_at(const char* place, int n) {
  uint64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    if (is_at(sterna_held_thread(threads[i]), place)) {
      sum += query(sterna_held_thread(threads[i])).load;
    }
  }
  return sum;
}

/* A measure of the program's own: flags. */
static uint64_t either(uint64_t so_far, uint64_t value) {
  return so_far | value;
}

static void test_sums(void) {
  static const uint32_t loads[] = {3, 0, 5};
  static char memory[64 * 4096];
  sterna_bubble* bubble = start(loads, 3);
  const sterna_held held = sterna_held_bubble(bubble);
  uint64_t bytes = 1;
  sterna_held_stats stats = query(held);
  EXPECT(stats.threads == 3 && stats.load == 3 + 1 + 5); /* 0 is 1. */
  EXPECT(stats.ready == 0 && stats.memory_bytes == 0 && stats.attributes[3] == 0);
  EXPECT(stats.last_place[0] != '\0');
  EXPECT(sterna_thread_set_load(threads[1], 40) == STERNA_SUCCESS);
  EXPECT(query(held).load == 48 && query(sterna_held_thread(threads[1])).load == 40);
  EXPECT(sterna_held_set_attribute(held, 2, 100) == STERNA_SUCCESS);
  EXPECT(sterna_held_set_attribute(sterna_held_thread(threads[0]), 2, 7) == STERNA_SUCCESS);
  EXPECT(sterna_held_add_attribute(sterna_held_thread(threads[2]), 2, 10) == STERNA_SUCCESS);
  EXPECT(sterna_held_add_attribute(sterna_held_thread(threads[2]), 2, -4) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == 113 && query(held).attributes[1] == 0);
  EXPECT(query(sterna_held_thread(threads[2])).attributes[2] == 6);
  EXPECT(sterna_attribute_synthesise(2, sterna_synthesis_max) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == 100);
  EXPECT(sterna_attribute_synthesise(2, sterna_synthesis_min) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == 6); /* threads[1] has none: it does not count. */
  EXPECT(sterna_attribute_synthesise(2, either) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == (100 | 7 | 6));
  EXPECT(sterna_held_set_attribute(sterna_held_thread(threads[1]), 2, 0) == STERNA_SUCCESS);
  EXPECT(sterna_attribute_synthesise(2, sterna_synthesis_min) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == 0 && query(held).attributes[1] == 0);
  EXPECT(sterna_attribute_synthesise(2, NULL) == STERNA_SUCCESS);
  EXPECT(query(held).attributes[2] == 113);
  EXPECT(sterna_attribute_synthesise(STERNA_ATTRIBUTES, NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("attribute 4"));
  memset(memory, 1, sizeof memory);
  EXPECT(sterna_bubble_own_memory(bubble, memory, sizeof memory) == STERNA_SUCCESS);
  stats = query(held);
  EXPECT(stats.memory_bytes == 0 || stats.memory_bytes >= sizeof memory - 2 * 4096);
  const sterna_status status = sterna_held_memory_on(held, "numa:0", &bytes);
  EXPECT(status == STERNA_NOT_FOUND || (status == STERNA_SUCCESS && bytes <= stats.memory_bytes));
  EXPECT(sterna_held_memory_on(held, "machine:0", &bytes) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("no NUMA node"));
  EXPECT(sterna_thread_set_load(threads[0], 0) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("1 or more"));
  EXPECT(sterna_held_set_attribute(held, STERNA_ATTRIBUTES, 1) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("attribute 4"));
  stats.size_bytes = 1;
  EXPECT(sterna_held_query(held, &stats) == STERNA_INVALID_ARGUMENT);
  end(bubble, 3);
}

/* Policies that divide load weigh by what the program says, before and later. */
static void test_placement(void) {
  static const uint32_t loads[] = {6, 2, 2, 2};
  EXPECT(sterna_policy_set("spread") == STERNA_SUCCESS);
  sterna_bubble* bubble = start(loads, 4);
  /* Anew, now that all sleep: while they began, a processor without work may have taken some. */
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  EXPECT(load_at("pu:0", 4) == 6 && load_at("pu:1", 4) == 6);
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_set_load(threads[i], i == 3 ? 21 : 7) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  EXPECT(load_at("pu:0", 4) == 21 && load_at("pu:1", 4) == 21);
  end(bubble, 4);
}

/* The attribute says on which processor. */
static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  const uint64_t wanted = sterna_entity_attribute(view, entity, 1);
  (void)data;
  EXPECT(sterna_entity_attribute(view, entity, 4) == 0);
  EXPECT(sterna_entity_memory(view, entity, STERNA_NO_PLACE) == 0);
  sterna_place place = sterna_view_domain(view);
  for (int i = 0; sterna_place_inner(view, place, 0) != STERNA_NO_PLACE; ++i) {
    const sterna_place inner = sterna_place_inner(view, place, i == 0 ? (uint32_t)wanted : 0);
    place = inner != STERNA_NO_PLACE ? inner : sterna_place_inner(view, place, 0);
  }
  sterna_entity_put(view, entity, wanted != 0 ? place : sterna_view_domain(view));
}

static void test_own_policy(void) {
  static const uint32_t loads[] = {1};
  const sterna_policy policy = {.size_bytes = sizeof policy, .name = "numbered", .submit = submit};
  EXPECT(sterna_policy_register(&policy) == STERNA_SUCCESS);
  EXPECT(sterna_policy_register(&policy) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("already"));
  EXPECT(sterna_policy_set("numbered") == STERNA_SUCCESS);
  sterna_bubble* bubble = start(loads, 1);
  EXPECT(is_at(sterna_held_bubble(bubble), "machine:0"));
  EXPECT(sterna_held_set_attribute(sterna_held_thread(threads[0]), 1, 1) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  EXPECT(!is_at(sterna_held_bubble(bubble), "machine:0")); /* By the sum over what it holds. */
  end(bubble, 1);
}

/* Refusals call bubbles by their names. */
static void test_names(void) {
  static const uint32_t loads[] = {1};
  sterna_bubble* bubble = start(loads, 1);
  sterna_bubble* outer = NULL;
  EXPECT(sterna_bubble_set_name(bubble, "late") == STERNA_BUSY);
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_name(outer, "a name of many more than thirty-one bytes") ==
         STERNA_SUCCESS);
  EXPECT(sterna_bubble_set_name(outer, "outer") == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, bubble) == STERNA_BUSY);
  EXPECT(has_detail("into bubble 'outer': the bubble runs already"));
  EXPECT(sterna_bubble_set_name(outer, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_add_bubble(outer, outer) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("into bubble 0x"));
  EXPECT(sterna_bubble_destroy(outer) == STERNA_SUCCESS);
  end(bubble, 1);
}

/* Who is in no bubble has none of this, and is told so. */
static void in_no_bubble(void* unused) {
  (void)unused;
  EXPECT(sterna_thread_set_load(sterna_thread_self(), 2) == STERNA_UNSUPPORTED);
  EXPECT(has_detail("outside of bubbles"));
}

int main(void) {
  sterna_thread* thread = NULL;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.policy = "sprad";
  EXPECT(sterna_start(&options) == STERNA_INVALID_ARGUMENT);
  EXPECT(has_detail("sprad"));
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_sums();
  test_names();
  if (sterna_node_count() == 1 && sterna_worker_count() == 2) {
    test_placement();
    test_own_policy();
  } else {
    puts("skipped: places by load: they need one node with two processors");
  }
  EXPECT(sterna_thread_create(NULL, in_no_bubble, NULL, &thread) == STERNA_SUCCESS);
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
