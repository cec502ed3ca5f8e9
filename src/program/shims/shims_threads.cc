// Kernel threads of a rank (std::thread, OpenMP runtimes): they have their own copies of the
// program's thread-local variables and hold the rank here while they live.
#include <cerrno>
#include <csignal>
#include <ctime>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/shims/threads.h"

namespace sterna::program {
namespace {

constexpr std::uint64_t kJoinPollNs = 50'000;

/// Set in each thread of a rank; its destructor runs when the thread ends. Once a process.
constinit pthread_key_t end_key;
constinit bool has_end_key = false;

/// What a new thread must know; in the rank's heap, freed by the thread. Lives on as the value of
/// end_key, hence the round.
struct ThreadStart {
  void* (*function)(void*);
  void* argument;
  memory::RankSlot* slot;
  std::uint64_t key;
  int round;
};

void thread_ends(void* value) {
  auto* start = static_cast<ThreadStart*>(value);
  // Other destructors of the rank may still run: stay until libc's last round.
  if (++start->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    ::pthread_setspecific(end_key, start);
    return;
  }
  memory::RankSlot* slot = start->slot;
  const std::uint64_t key = start->key;
  rank_free(*slot, start);
  remove_blocker(data_of(*slot), BlockerKind::thread, key);
}

void* run_thread(void* value) {
  auto* start = static_cast<ThreadStart*>(value);
  set_foreign_slot(start->slot);
  init_private_tls(open_program()->parts().graph, start->slot->images.base, thread_pointer());
  ::pthread_setspecific(end_key, start);
  return start->function(start->argument);
}

int shim_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                void* argument) {
  RankData& data = calling_data();
  data.has_threads = true;
  threads::has_foreign_threads.store(true, std::memory_order_relaxed);
  auto* start = static_cast<ThreadStart*>(rank_allocate(*data.slot, sizeof(ThreadStart)));
  if (start == nullptr) {
    return EAGAIN;
  }
  *start = {function, argument, data.slot, blocker_key(start), 0};
  add_blocker(data, BlockerKind::thread, start->key, "a thread of its own is running");
  // On the worker's thread pointer: libc keeps what it allocates for a thread longer than the rank
  // is here.
  const int result =
      on_worker(data, [&] { return ::pthread_create(thread, attributes, run_thread, start); });
  if (result != 0) {
    remove_blocker(data, BlockerKind::thread, start->key);
    rank_free(*data.slot, start);
  }
  return result;
}

/// Other ranks of the worker run meanwhile.
int shim_join(pthread_t thread, void** result) {
  RankData& data = calling_data();
  if (!is_main_of(data)) {
    return ::pthread_join(thread, result);
  }
  for (;;) {
    const int number = on_worker(data, [&] { return ::pthread_tryjoin_np(thread, result); });
    if (number != EBUSY) {
      return number;
    }
    on_worker(data, [&] { host_calls().sleep_for(*data.slot, kJoinPollNs); });
  }
}

[[noreturn]] void shim_exit(void* result) {
  RankData& data = calling_data();
  if (!is_main_of(data)) {
    ::pthread_exit(result);
  }
  // The main thread ends when the others have, and the rank with it.
  while (data.slot->refusals[static_cast<std::size_t>(BlockerKind::thread)].load(
             std::memory_order_relaxed) != 0) {
    on_worker(data, [&] { host_calls().sleep_for(*data.slot, kJoinPollNs); });
  }
  for (const Shim& shim : start_shims()) {
    if (shim.name == "exit") {
      reinterpret_cast<void (*)(int)>(shim.function)(0);
    }
  }
  __builtin_unreachable();
}

// Functions of a thread that ask the kernel by its id: the rank's own has none, its worker's does.

bool is_rank_itself(const RankData& data, pthread_t thread) noexcept {
  return is_main_of(data) && thread == ::pthread_self();
}

template <typename Function, typename... Args>
int on_thread(pthread_t thread, Function function, Args... arguments) {
  RankData& data = calling_data();
  if (is_rank_itself(data, thread)) {
    return on_worker(data, [&] { return function(::pthread_self(), arguments...); });
  }
  return function(thread, arguments...);
}

int shim_getaffinity(pthread_t thread, std::size_t bytes, cpu_set_t* processors) {
  return on_thread(thread, ::pthread_getaffinity_np, bytes, processors);
}

/// Where a rank runs is for the runtime to decide.
int shim_setaffinity(pthread_t thread, std::size_t bytes, const cpu_set_t* processors) {
  return is_rank_itself(calling_data(), thread)
             ? EPERM
             : ::pthread_setaffinity_np(thread, bytes, processors);
}

int shim_sched_setaffinity(pid_t id, std::size_t bytes, const cpu_set_t* processors) {
  if (is_main_of(calling_data()) && (id == 0 || id == ::getpid())) {
    set_last_error_number(EPERM);
    return -1;
  }
  return ::sched_setaffinity(id, bytes, processors);
}

int shim_getname(pthread_t thread, char* name, std::size_t bytes) {
  return on_thread(thread, ::pthread_getname_np, name, bytes);
}
/// The name of the worker stays.
int shim_setname(pthread_t thread, const char* name) {
  return is_rank_itself(calling_data(), thread) ? 0 : ::pthread_setname_np(thread, name);
}
int shim_getschedparam(pthread_t thread, int* policy, sched_param* parameters) {
  return on_thread(thread, ::pthread_getschedparam, policy, parameters);
}
int shim_getcpuclockid(pthread_t thread, clockid_t* clock) {
  return on_thread(thread, ::pthread_getcpuclockid, clock);
}
int shim_kill(pthread_t thread, int signal) {
  return on_thread(thread, ::pthread_kill, signal);
}

int shim_getattr(pthread_t thread, pthread_attr_t* attributes) {
  RankData& data = calling_data();
  if (!is_rank_itself(data, thread)) {
    return ::pthread_getattr_np(thread, attributes);
  }
  const memory::Region& stack = data.slot->stack;
  if (const int number = ::pthread_attr_init(attributes); number != 0) {
    return number;
  }
  return ::pthread_attr_setstack(attributes, reinterpret_cast<void*>(stack.base), stack.bytes);
}

}  // namespace

Result<> prepare_threads() {
  if (!has_end_key && ::pthread_key_create(&end_key, thread_ends) != 0) {
    return Error{Errc::system, "cannot create a thread-specific key: too many are in use"};
  }
  has_end_key = true;
  return Done{};
}

std::span<const Shim> thread_shims() {
  static const Shim shims[] = {
      function_shim("pthread_create", shim_create),
      function_shim("pthread_join", shim_join),
      function_shim("pthread_exit", shim_exit),
      function_shim("pthread_getaffinity_np", shim_getaffinity),
      function_shim("pthread_setaffinity_np", shim_setaffinity),
      function_shim("sched_setaffinity", shim_sched_setaffinity),
      function_shim("pthread_getname_np", shim_getname),
      function_shim("pthread_setname_np", shim_setname),
      function_shim("pthread_getschedparam", shim_getschedparam),
      function_shim("pthread_getcpuclockid", shim_getcpuclockid),
      function_shim("pthread_kill", shim_kill),
      function_shim("pthread_getattr_np", shim_getattr),
  };
  return shims;
}

}  // namespace sterna::program
