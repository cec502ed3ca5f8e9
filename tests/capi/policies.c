/* Which policies there are and which one rules: chosen before the start, changed while threads of
 * bubbles run; "named": the setting has named one. */
#include <string.h>

#include "expect.h"
#include "sterna/bubble.h"
#include "sterna/policy.h"
#include "sterna/sterna.h"
#include "sterna/thread.h"
#include "sterna/tune.h"

enum { kThreads = 24, kRounds = 400 };

static int seen_flat;
static int seen_own;
static int submitted; /* Atomic. */
static int rounds;    /* Atomic. */

static void visit(void* context, const char* name, const char* arguments, const char* summary) {
  ++*(int*)context;
  EXPECT(arguments != NULL && summary != NULL);
  seen_flat += strcmp(name, "flat") == 0;
  seen_own += strcmp(name, "own") == 0;
}

static void submit(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  __atomic_fetch_add(&submitted, 1, __ATOMIC_RELAXED);
  sterna_entity_get(view, entity);
  sterna_entity_put(view, entity, sterna_view_domain(view));
}

static const sterna_policy own = {.size_bytes = sizeof own,
                                  .name = "own",
                                  .summary = "everything on the machine",
                                  .submit = submit};

static int is_now(const char* text) {
  char buffer[64];
  EXPECT(sterna_policy_get(buffer, sizeof buffer) == STERNA_SUCCESS);
  return strcmp(buffer, text) == 0;
}

static void work(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    sterna_thread_yield();
  }
}

/* From a thread of a bubble that runs. */
static void change(void* argument) {
  static const char* const texts[] = {
      "spread", "own", "steal", "gang(slice=1)", "burst", "fallback(gang,steal)", "cache", "flat"};
  (void)argument;
  for (size_t i = 0; i < 5 * sizeof texts / sizeof *texts; ++i) {
    const char* const text = texts[i % (sizeof texts / sizeof *texts)];
    EXPECT(sterna_policy_set(text) == STERNA_SUCCESS);
    EXPECT(is_now(text));
    sterna_thread_yield();
  }
}

static void test_change(void) {
  sterna_bubble* outer = NULL;
  EXPECT(sterna_bubble_create(&outer) == STERNA_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    sterna_bubble* inner = NULL;
    EXPECT(sterna_bubble_create(&inner) == STERNA_SUCCESS);
    for (int j = 0; j < kThreads / 4; ++j) {
      EXPECT(sterna_bubble_add_thread(inner, NULL, work, NULL) == STERNA_SUCCESS);
    }
    EXPECT(sterna_bubble_add_bubble(outer, inner) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_add_thread(outer, NULL, change, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_submit(outer) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(outer) == STERNA_SUCCESS);
  EXPECT(rounds == kThreads * kRounds);
  EXPECT(submitted >= 5); /* Each time it ruled. */
  EXPECT(is_now("flat"));
}

static void test_refusals(void) {
  char text[240];
  char few[3];
  EXPECT(sterna_policy_set("spread") == STERNA_SUCCESS);
  EXPECT(sterna_policy_set("no such policy") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, "there is no policy \"no such policy\"") != NULL);
  EXPECT(sterna_policy_set("gang(sideways)") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_policy_set(NULL) == STERNA_INVALID_ARGUMENT);
  EXPECT(is_now("spread"));
  EXPECT(sterna_policy_get(NULL, 3) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_policy_get(few, sizeof few) == STERNA_TRUNCATED);
  EXPECT(strcmp(few, "sp") == 0);
  EXPECT(sterna_policy_list(NULL, NULL) == STERNA_INVALID_ARGUMENT);
}

int main(int argc, char** argv) {
  const int is_named = argc > 1 && strcmp(argv[1], "named") == 0;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  int count = 0;
  options.workers = 2;
  EXPECT(sterna_policy_register(&own) == STERNA_SUCCESS);
  EXPECT(sterna_policy_list(visit, &count) == STERNA_SUCCESS);
  EXPECT(seen_flat == 1 && seen_own == 1 && count > 5);
  EXPECT(is_named || is_now("flat")); /* The launcher's settings come with the start. */
  EXPECT(sterna_policy_set("no such policy") == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_policy_set("own") == STERNA_SUCCESS);
  EXPECT(is_named || is_now("own"));
  if (is_named) {
    options.policy = "steal";
  }
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  EXPECT(is_now(is_named ? "burst" : "own"));
  test_change();
  test_refusals();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
