/* Bubbles from filiation: the trees of programs that make no bubble, seen by a policy of their
 * own. */
#include <stdatomic.h>
#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/control.h"
#include "sterna/policy.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"

static char tree[256];
static atomic_int go_on;

static void add(const char* text) {
  EXPECT(strlen(tree) + strlen(text) < sizeof tree);
  strcat(tree, text);
}

static void write_tree(sterna_entity* entity) {
  for (; entity != NULL; entity = sterna_entity_next(entity)) {
    if (sterna_entity_is_bubble(entity)) {
      add("(");
      write_tree(sterna_entity_first(entity));
      add(")");
    } else {
      add("t");
    }
  }
}

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  tree[0] = '\0';
  write_tree(sterna_view_first(view));
  sterna_entity_put(view, entity, sterna_view_domain(view));
}

static void expect_tree(const char* expected) {
  EXPECT(sterna_bubble_shake() == STERNA_SUCCESS); /* Submits each, so the last sees all. */
  if (strcmp(tree, expected) != 0) {
    fprintf(stderr, "not true: %s is %s\n", tree, expected);
    exit(1);
  }
}

static void wait_for_go(void* argument) {
  (void)argument;
  while (atomic_load(&go_on) == 0) {
    sterna_thread_yield();
  }
}

static sterna_thread* create(uint32_t auto_bubbles, sterna_thread_function function) {
  sterna_thread* thread = NULL;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.auto_bubbles = auto_bubbles;
  EXPECT(sterna_thread_create(&options, function, NULL, &thread) == STERNA_SUCCESS);
  return thread;
}

static void join(sterna_thread* thread) {
  EXPECT(sterna_thread_join(thread) == STERNA_SUCCESS);
}

static sterna_thread* inner[3];

static void makes_two(void* argument) {
  (void)argument;
  inner[0] = create(STERNA_AUTO_BUBBLES_INHERIT, wait_for_go);
  inner[1] = create(STERNA_AUTO_BUBBLES_OFF, wait_for_go);
  /* Where it stays is up to the program in a bubble, too. */
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.place = "machine:0";
  EXPECT(sterna_thread_create(&options, wait_for_go, NULL, &inner[2]) == STERNA_SUCCESS);
  expect_tree("t(ttt)");
  atomic_store(&go_on, 1);
  for (int i = 0; i < 3; ++i) {
    join(inner[i]);
  }
  expect_tree("t");
  atomic_store(&go_on, 0);
}

static void makes_none(void* argument) {
  (void)argument;
  atomic_store(&go_on, 1);
  sterna_thread* const plain = create(STERNA_AUTO_BUBBLES_INHERIT, wait_for_go);
  join(plain);
  atomic_store(&go_on, 0);
}

static void leaves_one(void* argument) {
  (void)argument;
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.is_detached = 1;
  EXPECT(sterna_thread_create(&options, wait_for_go, NULL, NULL) == STERNA_SUCCESS);
}

/* A thread of a bubble leaves one behind that outlives the bubble. */
static void test_in_bubble(int has_setting) {
  sterna_bubble* bubble = NULL;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.auto_bubbles = has_setting ? STERNA_AUTO_BUBBLES_INHERIT : STERNA_AUTO_BUBBLES_FILIATION;
  EXPECT(sterna_bubble_add_thread(bubble, &options, leaves_one, NULL) == STERNA_SUCCESS);
  static char data[64 * 1024];
  EXPECT(sterna_bubble_own_memory(bubble, NULL, sizeof data) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_own_memory(bubble, data, SIZE_MAX / 4) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_own_memory(bubble, data, SIZE_MAX) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_bubble_own_memory(bubble, data, sizeof data) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  expect_tree("(t)");
  atomic_store(&go_on, 1);
  size_t count = 1;
  while (count != 0) {
    EXPECT(sterna_thread_list(NULL, 0, &count) == STERNA_SUCCESS);
  }
  /* What has ended is in no list, and leaves its tree a moment later. */
  do {
    tree[0] = '\0'; /* Of an empty tree nothing is submitted. */
    EXPECT(sterna_bubble_shake() == STERNA_SUCCESS);
  } while (tree[0] != '\0');
  atomic_store(&go_on, 0);
}

static void test_errors(void) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_thread* thread = NULL;
  options.auto_bubbles = 3;
  EXPECT(sterna_thread_create(&options, wait_for_go, NULL, &thread) == STERNA_INVALID_ARGUMENT);
  options.auto_bubbles = STERNA_AUTO_BUBBLES_FILIATION;
  options.has_own_locals = 2;
  EXPECT(sterna_thread_create(&options, wait_for_go, NULL, &thread) == STERNA_INVALID_ARGUMENT);
}

int main(int argc, char** argv) {
  const int has_setting = argc > 1 && strcmp(argv[1], "setting") == 0;
  sterna_policy policy;
  memset(&policy, 0, sizeof policy);
  policy.size_bytes = sizeof policy;
  policy.name = "looks";
  policy.submit = submit;
  EXPECT(sterna_policy_register(&policy) == STERNA_SUCCESS);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 3;
  options.policy = "looks";
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  sterna_thread* const maker =
      create(has_setting ? STERNA_AUTO_BUBBLES_INHERIT : STERNA_AUTO_BUBBLES_FILIATION, makes_two);
  join(maker);
  join(create(STERNA_AUTO_BUBBLES_OFF, makes_none));
  test_in_bubble(has_setting);
  test_errors();
  tree[0] = '\0';
  expect_tree("");
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (sterna_node_index() == 0) {
    puts("No Errors");
  }
  return 0;
}
