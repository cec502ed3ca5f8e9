// Threads with thread-local variables of their own (has_own_locals): many of them, on two workers,
// between threads without. `locals <module>`; with the setting own_locals `locals <module> all`.
// Prints "No Errors".
#include "locals.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <sterna/control.h>
#include <sterna/key.h>
#include <sterna/sterna.h>
#include <sterna/sync.h>
#include <sterna/thread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "expect.h"

namespace {

constexpr int kThreads = 300;
constexpr int kTurns = 100;

int keys_ended = 0;  // Atomic, as the next ones.
int posix_keys_ended = 0;
int moves = 0;  // To another kernel thread.

thread_local char text[100] = "initial";

sterna_key key;
pthread_key_t posix_key;
sterna_mutex mutex;
pthread_mutex_t recursive;
FILE* stream = nullptr;
int* (*module_local)() = nullptr;  // Null: not loaded yet. Atomic.

void end_key(void* value) {
  EXPECT(*static_cast<int*>(value) == count);  // On the thread itself.
  __atomic_fetch_add(&keys_ended, 1, __ATOMIC_RELAXED);
}

void end_posix_key(void*) {
  EXPECT(sterna_thread_self() == nullptr);
  __atomic_fetch_add(&posix_keys_ended, 1, __ATOMIC_RELAXED);
}

long kernel_thread() {
  return syscall(SYS_gettid);
}

/// One that changes its worker for sure.
void move_to(std::uint32_t worker) {
  const std::uint64_t workers = std::uint64_t{1} << worker;
  EXPECT(sterna_thread_set_workers(sterna_thread_self(), &workers, 1) == STERNA_SUCCESS);
}

void throw_across(int number) {
  try {
    try {
      throw std::runtime_error{std::to_string(number)};
    } catch (const std::exception&) {
      sterna_thread_yield();  // While it is caught.
      throw;
    }
  } catch (const std::exception& error) {
    sterna_thread_yield();
    EXPECT(std::uncaught_exceptions() == 0 && std::to_string(number) == error.what());
  }
}

/// What a thread looks at again and again, by addresses that the compiler may keep.
struct View {
  int number;
  int* its_count = &count;
  char* its_text = text;
  int* its_errno = &errno;
  pthread_t its_self = pthread_self();
  int* its_module = nullptr;

  void check() const {
    EXPECT(its_count == &count && *its_count == number && its_text == text);
    EXPECT(its_errno == &errno && its_errno == sterna_errno() && errno == number);
    EXPECT(pthread_equal(its_self, pthread_self()) != 0);
    EXPECT(pthread_getspecific(posix_key) == &count && sterna_key_get(key) == &count);
    EXPECT(its_module == nullptr || (its_module == module_local() && *its_module == number));
  }
};

void look_at_module(View& view) {
  if (int* (*const function)() = __atomic_load_n(&module_local, __ATOMIC_ACQUIRE);
      function != nullptr && view.its_module == nullptr) {
    view.its_module = function();
    EXPECT(*view.its_module == 5);
    *view.its_module = view.number;
  }
}

void use_what_has_owners(int number) {
  EXPECT(pthread_mutex_lock(&recursive) == 0);
  EXPECT(pthread_mutex_lock(&recursive) == 0);
  EXPECT(pthread_mutex_unlock(&recursive) == 0);
  EXPECT(pthread_mutex_unlock(&recursive) == 0);
  EXPECT(pthread_mutex_unlock(&recursive) == EPERM);
  EXPECT(fprintf(stream, "%d %s\n", number, text) > 0);
}

void do_turn(const View& view, int turn) {
  const long before = kernel_thread();
  auto* const block = static_cast<int*>(malloc(static_cast<std::size_t>(16 + view.number)));
  *block = view.number;
  object.add();
  errno = view.number;
  view.check();
  switch ((view.number + turn) % 8) {
    case 0:
      sterna_thread_sleep(1000);
      break;
    case 1:
      EXPECT(sterna_mutex_lock(&mutex) == STERNA_SUCCESS);
      sterna_thread_yield();
      EXPECT(sterna_mutex_unlock(&mutex) == STERNA_SUCCESS);
      break;
    case 2:
      throw_across(view.number);
      break;
    case 3:
      move_to(static_cast<std::uint32_t>(turn) % sterna_worker_count());
      break;
    case 4:
      (void)sterna_blocking_begin();
      errno = view.number;
      sterna_blocking_end();
      break;
    case 5:
      use_what_has_owners(view.number);
      break;
    default:
      sterna_thread_yield();
  }
  errno = view.number;  // What is called may have set it: to the thread's own.
  view.check();
  EXPECT(*block == view.number);
  free(block);
  if (kernel_thread() != before) {
    __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
  }
}

void run_own(void* number) {
  EXPECT(count == 17 && std::strcmp(text, "initial") == 0 && errno == 0);
  View view{.number = 1000 + *static_cast<const int*>(number)};
  count = view.number;
  errno = view.number;
  snprintf(text, sizeof text, "thread %d", view.number);
  EXPECT(sterna_key_set(key, &count) == STERNA_SUCCESS);
  EXPECT(pthread_setspecific(posix_key, &count) == 0);
  for (int turn = 0; turn < kTurns; ++turn) {
    look_at_module(view);
    do_turn(view, turn);
  }
}

// Between them: their own errno, and the variables of the kernel thread.
void run_usual(void* number) {
  for (int turn = 0; turn < 10 * kTurns; ++turn) {
    *sterna_errno() = *static_cast<const int*>(number);
    sterna_thread_yield();
    EXPECT(*sterna_errno() == *static_cast<const int*>(number));
  }
}

void test_many(const char* module) {
  std::vector<int> numbers(2 * kThreads);
  std::vector<sterna_thread*> threads;
  count = 1;
  for (int i = 0; i < 2 * kThreads; ++i) {
    numbers[static_cast<std::size_t>(i)] = i;
    int& number = numbers[static_cast<std::size_t>(i)];
    threads.push_back(i % 2 == 0 ? start(run_own, &number, with_locals())
                                 : start(run_usual, &number, STERNA_THREAD_OPTIONS_DEFAULT));
    if (i == kThreads) {  // Beside threads that are there already.
      void* const handle = dlopen(module, RTLD_NOW);
      EXPECT(handle != nullptr);
      auto* const function = reinterpret_cast<int* (*)()>(dlsym(handle, "module_local"));
      EXPECT(function != nullptr);
      __atomic_store_n(&module_local, function, __ATOMIC_RELEASE);
    }
  }
  for (sterna_thread* const thread : threads) {
    join(thread);
  }
  EXPECT(count == 1 && *module_local() == 5);  // The kernel thread's, as before.
  EXPECT(made == kThreads && destroyed == made && keys_ended == made && posix_keys_ended == made);
  EXPECT(sterna_worker_count() == 1 || moves > kThreads);
}

void sees_own(void* kernel_count) {
  EXPECT(&count != kernel_count && count == 17);
}

void test_setting() {
  sterna_thread* thread = nullptr;
  EXPECT(sterna_thread_create(nullptr, sees_own, &count, &thread) == STERNA_SUCCESS);
  join(thread);
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc >= 2);
  sterna_options options = STERNA_OPTIONS_DEFAULT;
  options.workers = 2;
  EXPECT(sterna_start(&options) == STERNA_SUCCESS);
  EXPECT(sterna_key_create(&key, end_key) == STERNA_SUCCESS);
  EXPECT(pthread_key_create(&posix_key, end_posix_key) == 0);
  EXPECT(sterna_mutex_init(&mutex, STERNA_MUTEX_NORMAL) == STERNA_SUCCESS);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &attributes);
  stream = tmpfile();
  EXPECT(stream != nullptr);
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode == "all") {
    test_setting();
  } else {
    test_many(argv[1]);
  }
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  if (sterna_rank() == 0) {
    printf("No Errors\n");
  }
  return 0;
}
