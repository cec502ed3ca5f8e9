/* Threads and bubbles to look at, until a file exists: the bubble "red", which has memory, holds
 * "red 0", which computes all the time, and the bubble "blue" of "blue 0" and "blue 1", which
 * compute in turns and yield; "green" holds "green 0", which waits. Beside them a thread "alone",
 * which waits. Two workers.
 *
 * usage: cluster_gangs END
 */
#include <stdio.h>
#include <stdlib.h>
#include <sterna/bubble.h>
#include <sterna/sterna.h>
#include <sterna/thread.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY_BYTES = 1 << 20 };

static int is_over(const char* path) {
  return access(path, F_OK) == 0;
}

static void compute(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 500000);
}

static void compute_alone(void* path) {
  while (!is_over(path)) {
    compute();
  }
}

static void compute_in_turns(void* path) {
  while (!is_over(path)) {
    compute();
    sterna_thread_yield();
  }
}

static void wait_for_end(void* path) {
  while (!is_over(path)) {
    sterna_thread_sleep(100000000);
  }
}

static int add(sterna_bubble* bubble, const char* name, uint32_t load, void (*function)(void*),
               void* argument) {
  sterna_thread_options options = STERNA_THREAD_OPTIONS_DEFAULT;
  options.name = name;
  options.load = load;
  return sterna_bubble_add_thread(bubble, &options, function, argument) != STERNA_SUCCESS;
}

int main(int argc, char** argv) {
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  sterna_thread_options alone = STERNA_THREAD_OPTIONS_DEFAULT;
  sterna_bubble *red = NULL, *blue = NULL, *green = NULL;
  sterna_thread* thread = NULL;
  void* memory = aligned_alloc(4096, MEMORY_BYTES);
  options.workers = 2;
  alone.name = "alone";
  if (argc != 2 || memory == NULL || sterna_start(&options) != STERNA_SUCCESS ||
      sterna_bubble_create(&red) != STERNA_SUCCESS ||
      sterna_bubble_create(&blue) != STERNA_SUCCESS ||
      sterna_bubble_create(&green) != STERNA_SUCCESS) {
    return 1;
  }
  for (int i = 0; i < MEMORY_BYTES; i += 4096) {
    ((volatile char*)memory)[i] = 1; /* Pages that nobody has touched are nowhere. */
  }
  if (sterna_bubble_set_name(red, "red") || sterna_bubble_set_name(blue, "blue") ||
      sterna_bubble_set_name(green, "green") || add(red, "red 0", 7, compute_alone, argv[1]) ||
      add(blue, "blue 0", 2, compute_in_turns, argv[1]) ||
      add(blue, "blue 1", 3, compute_in_turns, argv[1]) ||
      add(green, "green 0", 1, wait_for_end, argv[1]) || sterna_bubble_add_bubble(red, blue) ||
      sterna_bubble_own_memory(red, memory, MEMORY_BYTES) || sterna_bubble_submit(red) ||
      sterna_bubble_submit(green) || sterna_thread_create(&alone, wait_for_end, argv[1], &thread)) {
    return 1;
  }
  puts("here");
  fflush(stdout);
  if (sterna_bubble_join(red) || sterna_bubble_join(green) || sterna_thread_join(thread) ||
      sterna_stop()) {
    return 1;
  }
  free(memory);
  puts("No Errors");
  return 0;
}
