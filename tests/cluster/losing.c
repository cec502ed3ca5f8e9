/* A policy of the program's takes each bubble and never puts it back; the program runs until a file
 * exists. Says "lost 0x..." for the bubble, then how it ended.
 *
 * usage: cluster_losing END
 */
#include <stdio.h>
#include <sterna/bubble.h>
#include <sterna/policy.h>
#include <sterna/sterna.h>
#include <sterna/thread.h>
#include <unistd.h>

static void take(sterna_view* view, sterna_entity* entity, void* data) {
  (void)data;
  sterna_entity_get(view, entity);
}

/* Sleeps between looks, so that workers are idle: with the setting audit they look for what is
 * lost. */
static void wait_for_end(void* path) {
  while (access(path, F_OK) != 0) {
    sterna_thread_sleep(1000000);
  }
}

int main(int argc, char** argv) {
  const sterna_policy loser = {
      .size_bytes = sizeof loser, .name = "loser", .summary = "takes all", .submit = take};
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  sterna_bubble* bubble = NULL;
  options.policy = "loser";
  if (argc != 2 || sterna_policy_register(&loser) != STERNA_SUCCESS ||
      sterna_start(&options) != STERNA_SUCCESS || sterna_bubble_create(&bubble) != STERNA_SUCCESS ||
      sterna_bubble_add_thread(bubble, NULL, wait_for_end, argv[1]) != STERNA_SUCCESS ||
      sterna_bubble_submit(bubble) != STERNA_SUCCESS) {
    return 1;
  }
  printf("lost %p\n", (void*)bubble);
  fflush(stdout);
  /* The scheduler put it back where it was: its thread runs all the same. */
  if (sterna_bubble_join(bubble) != STERNA_SUCCESS || sterna_stop() != STERNA_SUCCESS) {
    return 1;
  }
  puts("No Errors");
  return 0;
}
