// Kernel threads of a rank (std::thread, OpenMP runtimes): they have their own copies of the
// program's thread-local variables and hold the rank here while they live, and until they are
// joined: no other process knows their numbers.
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
  KernelThread* thread;
  int round;
};

// A thread holds the rank under one of two keys.
std::uint64_t key_of_running(std::uint64_t serial) noexcept {
  return 2 * serial;
}
std::uint64_t key_of_ended(std::uint64_t serial) noexcept {
  return 2 * serial + 1;
}

/// Takes the first thread of which `is_it` holds out of the list, or null.
template <typename IsIt>
KernelThread* take_thread(RankData& data, IsIt is_it) noexcept {
  const SpinGuard guard{data.lock};
  for (KernelThread** link = &data.kernel_threads; *link != nullptr; link = &(*link)->next) {
    if (is_it(**link)) {
      KernelThread* const found = *link;
      *link = found->next;
      return found;
    }
  }
  return nullptr;
}

void add_thread(RankData& data, KernelThread& thread) noexcept {
  const SpinGuard guard{data.lock};
  thread.serial = ++data.kernel_thread_count;
  KernelThread** link = &data.kernel_threads;
  while (*link != nullptr) {
    link = &(*link)->next;
  }
  *link = &thread;
}

/// It was joined, or has ended and is detached, or has never been.
void forget_thread(RankData& data, KernelThread& thread) noexcept {
  remove_blocker(data, BlockerKind::thread, key_of_running(thread.serial));
  remove_blocker(data, BlockerKind::thread, key_of_ended(thread.serial));
  rank_free(*data.slot, &thread);
}

/// The number means nothing any more.
void note_joined(RankData& data, pthread_t id) noexcept {
  KernelThread* const joined = take_thread(
      data, [&](const KernelThread& thread) { return thread.id == id && thread.has_ended; });
  if (joined != nullptr) {
    forget_thread(data, *joined);
  }
}

/// Of the calling thread: perhaps it was detached before it had told its number.
bool is_detached() noexcept {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) {
    return false;
  }
  int state = PTHREAD_CREATE_JOINABLE;
  ::pthread_attr_getdetachstate(&attributes, &state);
  ::pthread_attr_destroy(&attributes);
  return state == PTHREAD_CREATE_DETACHED;
}

/// By the thread itself.
void note_ended(RankData& data, std::uint64_t serial) noexcept {
  // First: there is no moment in which nothing holds the rank.
  add_blocker(data, BlockerKind::thread, key_of_ended(serial),
              "a thread of its own has ended and was not joined");
  const bool was_detached = is_detached();
  KernelThread* const detached = take_thread(data, [&](KernelThread& thread) {
    thread.has_ended = thread.has_ended || thread.serial == serial;
    return thread.serial == serial && (was_detached || thread.is_detached);
  });
  if (detached != nullptr) {
    forget_thread(data, *detached);
  } else {
    remove_blocker(data, BlockerKind::thread, key_of_running(serial));
  }
}

void thread_ends(void* value) {
  auto* start = static_cast<ThreadStart*>(value);
  // Other destructors of the rank may still run: stay until libc's last round.
  if (++start->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    ::pthread_setspecific(end_key, start);
    return;
  }
  memory::RankSlot* slot = start->slot;
  const std::uint64_t serial = start->thread->serial;
  rank_free(*slot, start);
  note_ended(data_of(*slot), serial);
}

void note_id(RankData& data, std::uint64_t serial, pthread_t id) noexcept {
  (void)take_thread(data, [&](KernelThread& thread) {
    thread.id = thread.serial == serial ? id : thread.id;
    return false;
  });
}

void* run_thread(void* value) {
  auto* start = static_cast<ThreadStart*>(value);
  set_foreign_slot(start->slot);
  init_private_tls(open_program()->parts().graph, start->slot->images.base, thread_pointer());
  ::pthread_setspecific(end_key, start);
  note_id(data_of(*start->slot), start->thread->serial, ::pthread_self());
  return start->function(start->argument);
}

int shim_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                void* argument) {
  RankData& data = calling_data();
  data.has_threads = true;
  threads::has_foreign_threads.store(true, std::memory_order_relaxed);
  auto* start = static_cast<ThreadStart*>(rank_allocate(*data.slot, sizeof(ThreadStart)));
  auto* made = static_cast<KernelThread*>(rank_allocate(*data.slot, sizeof(KernelThread)));
  if (start == nullptr || made == nullptr) {
    rank_free(*data.slot, start);
    rank_free(*data.slot, made);
    return EAGAIN;
  }
  *made = {};
  *start = {function, argument, data.slot, made, 0};
  add_thread(data, *made);
  add_blocker(data, BlockerKind::thread, key_of_running(made->serial),
              "a thread of its own is running");
  // On the worker's thread pointer: libc keeps what it allocates for a thread longer than the rank
  // is here.
  const int result =
      on_worker(data, [&] { return ::pthread_create(thread, attributes, run_thread, start); });
  if (result != 0) {
    (void)take_thread(data, [&](const KernelThread& entry) { return &entry == made; });
    forget_thread(data, *made);
    rank_free(*data.slot, start);
  }
  return result;
}

int shim_tryjoin(pthread_t thread, void** result) {
  RankData& data = calling_data();
  const int number = is_main_of(data)
                         ? on_worker(data, [&] { return ::pthread_tryjoin_np(thread, result); })
                         : ::pthread_tryjoin_np(thread, result);
  if (number == 0) {
    note_joined(data, thread);
  }
  return number;
}

/// Other ranks of the worker run meanwhile.
int shim_join(pthread_t thread, void** result) {
  RankData& data = calling_data();
  if (!is_main_of(data)) {
    const int number = ::pthread_join(thread, result);
    if (number == 0) {
      note_joined(data, thread);
    }
    return number;
  }
  for (;;) {
    if (const int number = shim_tryjoin(thread, result); number != EBUSY) {
      return number;
    }
    on_worker(data, [&] { host_calls().sleep_for(*data.slot, kJoinPollNs); });
  }
}

int shim_timedjoin(pthread_t thread, void** result, const timespec* until) {
  const int number = ::pthread_timedjoin_np(thread, result, until);
  if (number == 0) {
    note_joined(calling_data(), thread);
  }
  return number;
}

int shim_clockjoin(pthread_t thread, void** result, clockid_t clock, const timespec* until) {
  const int number = ::pthread_clockjoin_np(thread, result, clock, until);
  if (number == 0) {
    note_joined(calling_data(), thread);
  }
  return number;
}

int shim_detach(pthread_t id) {
  RankData& data = calling_data();
  // Before: once it is detached its number may be another's.
  KernelThread* const ended = take_thread(data, [&](KernelThread& thread) {
    thread.is_detached = thread.is_detached || thread.id == id;
    return thread.id == id && thread.has_ended;
  });
  const int number = ::pthread_detach(id);
  if (ended != nullptr) {
    forget_thread(data, *ended);
  }
  return number;
}

bool has_running_threads(RankData& data) noexcept {
  bool has_some = false;
  (void)take_thread(data, [&](const KernelThread& thread) {
    has_some = has_some || !thread.has_ended;
    return false;
  });
  return has_some;
}

[[noreturn]] void shim_exit(void* result) {
  RankData& data = calling_data();
  if (!is_main_of(data)) {
    ::pthread_exit(result);
  }
  // The main thread ends when the others have, and the rank with it.
  while (has_running_threads(data)) {
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

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument) {
  return shim_create(thread, attributes, function, argument);
}

int join_thread(pthread_t thread, void** result) {
  return shim_join(thread, result);
}

int detach_thread(pthread_t thread) {
  return shim_detach(thread);
}

void exit_thread(void* result) {
  shim_exit(result);
}

std::span<const Shim> thread_shims() {
  static const Shim shims[] = {
      function_shim("pthread_create", shim_create),
      function_shim("pthread_join", shim_join),
      function_shim("pthread_tryjoin_np", shim_tryjoin),
      function_shim("pthread_timedjoin_np", shim_timedjoin),
      function_shim("pthread_clockjoin_np", shim_clockjoin),
      function_shim("pthread_detach", shim_detach),
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
