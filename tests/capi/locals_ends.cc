// Threads with thread-local variables of their own (has_own_locals): how they begin, wait, compute
// and end. `locals_ends [slices | refusal]`; run alone, and preempted. Prints "No Errors".
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sterna/bubble.h>
#include <sterna/control.h>
#include <sterna/io.h>
#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect.h"
#include "locals.h"

namespace {

void end_itself(void*) {
  object.add();
  count = 3;
  (void)sterna_thread_exit();
}

sterna_semaphore has_begun = STERNA_SEMAPHORE_INIT;

void waits_for_ever(void*) {
  object.add();
  EXPECT(sterna_semaphore_release(&has_begun, 1) == STERNA_SUCCESS);
  for (;;) {
    (void)sterna_thread_park(STERNA_FOREVER);
  }
}

int ends[2];

void reads(void*) {
  char byte = 0;
  count = 4;
  EXPECT(sterna_read(ends[0], &byte, 1) == 1 && byte == 'x' && count == 4);
  errno = 4711;
  EXPECT(sterna_blocking_begin() == STERNA_SUCCESS);
  EXPECT(read(ends[0], &byte, 1) == 1 && byte == 'y' && count == 4);
  sterna_blocking_end();
  EXPECT(errno == 4711 && count == 4);
  EXPECT(sterna_read(-1, &byte, 1) == -1 && errno == EBADF);
  object.add();
}

void writes(void* byte) {
  EXPECT(count == 17);
  EXPECT(write(ends[1], byte, 1) == 1);
  object.add();
}

// All ways to begin and to end; each runs the destructor before the join returns.
void test_ends() {
  const int before = destroyed;
  join(start(end_itself, nullptr, with_locals()));
  EXPECT(destroyed == before + 1);
  sterna_thread_options options = with_locals();
  options.is_cancellable = 1;
  sterna_thread* const waiting = start(waits_for_ever, nullptr, options);
  EXPECT(sterna_semaphore_acquire(&has_begun, STERNA_FOREVER) == STERNA_SUCCESS);
  EXPECT(sterna_thread_cancel(waiting) == STERNA_SUCCESS);
  join(waiting, STERNA_CANCELLED);
  EXPECT(destroyed == before + 2);
  EXPECT(pipe(ends) == 0);
  options = with_locals();
  options.is_bound = 1;
  options.worker = 0;
  options.guard_bytes = 4096;
  sterna_thread* const reader = start(reads, nullptr, options);
  char bytes[] = "xy";
  join(start(writes, &bytes[0], options));
  sterna_thread_sleep(1'000'000);
  join(start(writes, &bytes[1], options));
  join(reader);
  EXPECT(destroyed == before + 5);
  options = with_locals();
  std::size_t bytes_of_stack = 0;
  EXPECT(sterna_stack_create(100'000, &options.stack, &bytes_of_stack) == STERNA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    join(start(end_itself, nullptr, options));
  }
  EXPECT(sterna_stack_destroy(options.stack) == STERNA_SUCCESS);
  EXPECT(destroyed == before + 8);
  sterna_bubble* bubble = nullptr;
  EXPECT(sterna_bubble_create(&bubble) == STERNA_SUCCESS);
  options = with_locals();
  for (int i = 0; i < 10; ++i) {
    EXPECT(sterna_bubble_add_thread(bubble, &options, end_itself, nullptr) == STERNA_SUCCESS);
  }
  EXPECT(sterna_bubble_submit(bubble) == STERNA_SUCCESS);
  EXPECT(sterna_bubble_join(bubble) == STERNA_SUCCESS);
  EXPECT(destroyed == before + 18);
}

void computes(void* number) {
  int* const its_count = &count;
  const auto begin = sterna_thread_self();
  for (int i = 0; i < 20'000'000; ++i) {
    *const_cast<volatile int*>(its_count) = *static_cast<const int*>(number) + i;
    if (i % 1000 == 0) {
      free(malloc(100));
      EXPECT(count == *static_cast<const int*>(number) + i && begin == sterna_thread_self());
    }
  }
}

// With the setting preemption they take turns.
void test_computing() {
  std::vector<int> numbers{1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};
  std::vector<sterna_thread*> threads;
  threads.reserve(numbers.size());
  for (int& number : numbers) {
    threads.push_back(start(computes, &number, with_locals()));
  }
  for (sterna_thread* const thread : threads) {
    join(thread);
  }
}

int turn_of = 0;  // Atomic.

// On one worker, without a call: who waits gets it only if who computes is preempted.
void takes_turns(void* number) {
  const int mine = *static_cast<const int*>(number);
  count = mine;
  for (int round = 0; round < 20; ++round) {
    while (__atomic_load_n(&turn_of, __ATOMIC_ACQUIRE) % 2 != mine) {
      errno = mine;
      EXPECT(count == mine && errno == mine);
    }
    __atomic_fetch_add(&turn_of, 1, __ATOMIC_RELEASE);
  }
}

void test_preemption() {
  sterna_thread_options options = with_locals();
  options.is_bound = 1;
  options.worker = 0;
  int numbers[] = {0, 1};
  sterna_thread* const first = start(takes_turns, &numbers[0], options);
  join(start(takes_turns, &numbers[1], options));
  join(first);
}

void waits(void* semaphore) {
  count = 5;
  EXPECT(sterna_semaphore_acquire(static_cast<sterna_semaphore*>(semaphore), STERNA_FOREVER) ==
         STERNA_SUCCESS);
  EXPECT(count == 5);
}

// The system gives no memory for one more owner: the thread is refused, the others are well.
void test_refusal() {
  sterna_semaphore semaphore;
  EXPECT(sterna_semaphore_init(&semaphore, 0) == STERNA_SUCCESS);
  rlimit former{};
  EXPECT(getrlimit(RLIMIT_AS, &former) == 0);
  const rlimit none{.rlim_cur = 1 << 20, .rlim_max = former.rlim_max};
  sterna_thread_options options = with_locals();
  std::vector<sterna_thread*> threads(1000);
  sterna_status status = STERNA_SUCCESS;
  std::size_t running = 0;
  EXPECT(setrlimit(RLIMIT_AS, &none) == 0);
  while (status == STERNA_SUCCESS && running < threads.size()) {
    status = sterna_thread_create(&options, waits, &semaphore, &threads[running]);
    running += status == STERNA_SUCCESS ? 1 : 0;
  }
  EXPECT(setrlimit(RLIMIT_AS, &former) == 0);
  EXPECT(status == STERNA_SYSTEM || status == STERNA_OUT_OF_MEMORY);
  char detail[400];
  EXPECT(sterna_error_detail(detail, sizeof detail) == STERNA_SUCCESS && std::strlen(detail) > 10);
  EXPECT(sterna_semaphore_release(&semaphore, static_cast<std::uint32_t>(running)) ==
         STERNA_SUCCESS);
  for (std::size_t i = 0; i < running; ++i) {
    join(threads[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  test_ends();
  test_computing();
  if (mode == "refusal") {
    test_refusal();
  } else if (mode == "slices") {
    test_preemption();
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (sterna_rank() == 0) {
    printf("No Errors\n");
  }
  return 0;
}
