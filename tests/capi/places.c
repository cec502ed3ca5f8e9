/* Places of the machine, their memory, memory from there; and semaphores with names. */
#include <stdint.h>
#include <string.h>

#include "expect.h"
#include "sterna/place.h"
#include "sterna/sterna.h"
#include "sterna/sync.h"
#include "sterna/thread.h"

enum { kInfos = 256, kBlocks = 500 };

static void test_infos(void) {
  static sterna_place_info infos[kInfos];
  sterna_place_info one;
  size_t count = 0;
  uint64_t memory = 0;
  infos[0].size_bytes = sizeof *infos;
  EXPECT(sterna_place_list(infos, kInfos, &count) == STERNA_SUCCESS && count >= 2);
  EXPECT(infos[0].depth == 0 && infos[0].workers == sterna_worker_count());
  memory = infos[0].memory_bytes;
  for (size_t i = 0; i < count && i < kInfos; ++i) {
    memset(&one, 0, sizeof one);
    one.size_bytes = sizeof one;
    EXPECT(sterna_place_query(infos[i].name, &one) == STERNA_SUCCESS);
    EXPECT(memcmp(&one, &infos[i], sizeof one) == 0);
    EXPECT(one.processors >= 1 && one.processors <= infos[0].processors);
    EXPECT(one.memory_bytes <= memory && one.memory_nodes <= infos[0].memory_nodes);
    EXPECT(one.cache_bytes[0] == 0 || one.cache_processors[0] >= 1);
    EXPECT(one.cache_bytes[0] == 0 || one.cache_bytes[1] == 0 ||
           one.cache_bytes[0] <= one.cache_bytes[1]);
    EXPECT(infos[0].memory_nodes > 1 || one.is_bound == 0); /* There is no choice. */
  }
  EXPECT(sterna_place_query("moon:0", &one) == STERNA_NOT_FOUND);
  EXPECT(sterna_place_query(NULL, &one) == STERNA_INVALID_ARGUMENT);
  one.size_bytes = 1;
  EXPECT(sterna_place_query("machine:0", &one) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_place_list(infos, 1, NULL) == STERNA_INVALID_ARGUMENT);
}

static void use_memory(void* argument) {
  const char* const place = argument;
  unsigned char* blocks[kBlocks];
  for (size_t i = 0; i < kBlocks; ++i) {
    const size_t bytes = i % 50 == 0 ? 200000 : 1 + i * 31 % 2000;
    blocks[i] = i % 2 ? sterna_malloc_at(place, bytes) : sterna_calloc_at(place, 1, bytes);
    EXPECT(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0);
    EXPECT(i % 2 || (blocks[i][0] == 0 && blocks[i][bytes - 1] == 0));
    memset(blocks[i], (int)(i & 127), bytes);
    if (i % 16 == 0) {
      sterna_thread_yield();
    }
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    EXPECT(blocks[i][0] == (i & 127));
    blocks[i] = sterna_realloc_at(blocks[i], 3000);
    EXPECT(blocks[i] != NULL && blocks[i][0] == (i & 127));
    EXPECT(sterna_free_at(blocks[i]) == STERNA_SUCCESS);
  }
}

static void test_memory(void) {
  static const char* const places[] = {"machine:0", "pu:0", NULL, "machine:0"};
  sterna_thread* threads[4];
  char text[240];
  int other = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_create(NULL, use_memory, (void*)places[i], &threads[i]) == STERNA_SUCCESS);
  }
  use_memory((void*)places[1]); /* A kernel thread. */
  for (int i = 0; i < 4; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_malloc_at("moon:0", 1) == NULL);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, "no place \"moon:0\"") != NULL);
  EXPECT(sterna_calloc_at("machine:0", SIZE_MAX / 2, 3) == NULL);
  EXPECT(sterna_malloc_at("machine:0", SIZE_MAX / 2) == NULL);
  EXPECT(sterna_error_detail(text, sizeof text) == STERNA_SUCCESS);
  EXPECT(strstr(text, "no memory for") != NULL);
  EXPECT(sterna_free_at(&other) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_realloc_at(&other, 5) == NULL);
  EXPECT(sterna_free_at(NULL) == STERNA_SUCCESS);
}

static void take_named(void* argument) {
  sterna_semaphore* semaphore = NULL;
  (void)argument;
  EXPECT(sterna_semaphore_open("work", 0, 0, &semaphore) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_acquire(semaphore, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(semaphore) == STERNA_SUCCESS);
}

static void test_names(void) {
  sterna_semaphore *first = NULL, *second = NULL, *third = NULL;
  sterna_thread* threads[8];
  char longest[300];
  EXPECT(sterna_semaphore_open("work", 0, 0, &first) == STERNA_NOT_FOUND);
  EXPECT(sterna_semaphore_open("work", STERNA_SEMAPHORE_EXCLUSIVE, 0, &first) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_semaphore_open("work", STERNA_SEMAPHORE_CREATE, 3, &first) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_open("work", STERNA_SEMAPHORE_CREATE, 77, &second) == STERNA_SUCCESS);
  EXPECT(first == second);
  EXPECT(sterna_semaphore_open("work", STERNA_SEMAPHORE_CREATE | STERNA_SEMAPHORE_EXCLUSIVE, 1,
                               &third) == STERNA_BUSY);
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_thread_create(NULL, take_named, NULL, &threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_semaphore_release(first, 5) == STERNA_SUCCESS);
  for (int i = 0; i < 8; ++i) {
    EXPECT(sterna_thread_join(threads[i]) == STERNA_SUCCESS);
  }
  EXPECT(sterna_semaphore_try_acquire(first) == STERNA_BUSY);
  /* Without its name it lives on until its last close; the name is another one's. */
  EXPECT(sterna_semaphore_unlink("work") == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_unlink("work") == STERNA_NOT_FOUND);
  EXPECT(sterna_semaphore_open("work", STERNA_SEMAPHORE_CREATE, 1, &third) == STERNA_SUCCESS);
  EXPECT(third != first && sterna_semaphore_try_acquire(third) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_release(first, 1) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(first) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_try_acquire(second) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(second) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(second) == STERNA_NOT_FOUND);
  /* With its name it keeps its units while nobody has it open. */
  EXPECT(sterna_semaphore_release(third, 2) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(third) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_open("work", 0, 0, &third) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_try_acquire(third) == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_unlink("work") == STERNA_SUCCESS);
  EXPECT(sterna_semaphore_close(third) == STERNA_SUCCESS);
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  EXPECT(sterna_semaphore_open(longest, STERNA_SEMAPHORE_CREATE, 0, &first) ==
         STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_semaphore_open("", STERNA_SEMAPHORE_CREATE, 0, &first) == STERNA_INVALID_ARGUMENT);
  EXPECT(sterna_semaphore_unlink(NULL) == STERNA_INVALID_ARGUMENT);
}

int main(void) {
  EXPECT(sterna_malloc_at("machine:0", 1) == NULL);
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  test_infos();
  test_memory();
  test_names();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
