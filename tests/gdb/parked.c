/* Threads that are parked at known places, for the debugger: on a mutex, on a semaphore, in a sleep,
 * ready and never run. Calls all_are_parked() when they are, which aborts if there is an argument;
 * then ends them. */
#include <stdio.h>
#include <stdlib.h>

#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>

static sterna_mutex mutex = STERNA_MUTEX_INIT;
static sterna_semaphore semaphore = STERNA_SEMAPHORE_INIT;
static volatile int parked;

__attribute__((noinline)) static int hold_on_mutex(int depth) {
  if (depth != 0) {
    return hold_on_mutex(depth - 1) + 1;
  }
  ++parked;
  sterna_mutex_lock(&mutex);
  sterna_mutex_unlock(&mutex);
  return 0;
}

static void waits_for_mutex(void* depth) {
  volatile int secret = 4711;
  secret += hold_on_mutex((int)(size_t)depth);
  (void)secret;  // Read by the debugger only.
}

static void waits_for_unit(void* unused) {
  (void)unused;
  ++parked;
  sterna_semaphore_acquire(&semaphore, STERNA_FOREVER);
}

static void ends_at_once(void* unused) {
  (void)unused;
}

static int must_abort;

__attribute__((noinline)) void all_are_parked(void) {
  if (must_abort) {
    abort();
  }
}

static sterna_thread* make(const char* name, sterna_thread_function function, void* argument) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = name;
  sterna_thread* thread = NULL;
  if (sterna_thread_create(&options, function, argument, &thread) != STERNA_SUCCESS) {
    exit(1);
  }
  return thread;
}

static void conduct(void* unused) {
  (void)unused;
  sterna_mutex_lock(&mutex);
  sterna_thread* threads[4] = {make("locker", waits_for_mutex, (void*)3),
                               make("taker", waits_for_unit, NULL),
                               make("gone", ends_at_once, NULL), NULL};
  sterna_thread_join(threads[2]);
  while (parked != 2) {
    sterna_thread_yield();
  }
  sterna_thread_yield();
  sterna_thread_yield();
  threads[2] = make("unborn", ends_at_once, NULL);
  all_are_parked();
  sterna_mutex_unlock(&mutex);
  sterna_semaphore_release(&semaphore, 1);
  for (int i = 0; i < 3; ++i) {
    sterna_thread_join(threads[i]);
  }
}

int main(int argc, char** argv) {
  (void)argv;
  must_abort = argc > 1;
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 1;
  if (sterna_start(&options) != STERNA_SUCCESS) {
    return 1;
  }
  sterna_thread_join(make("conductor", conduct, NULL));
  sterna_stop();
  printf("No Errors\n");
  return 0;
}
