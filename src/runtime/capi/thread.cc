// thread.h: the C names of user threads.
#include <algorithm>
#include <cstring>

#include <sterna/thread.h>

#include "memory/rank_slot.h"
#include "runtime/capi/program.h"
#include "runtime/scope.h"
#include "threads/life.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

namespace {

threads::Thread* thread_of(const sterna_thread* thread) noexcept {
  return reinterpret_cast<threads::Thread*>(const_cast<sterna_thread*>(thread));
}

bool is_valid(const sterna_thread_options& options, std::uint32_t worker_count) noexcept {
  return options.size_bytes == sizeof options && options.is_bound <= 1 &&
         options.is_detached <= 1 &&
         (options.worker < worker_count ||
          (options.worker == STERNA_ANY_WORKER && options.is_bound == 0));
}

}  // namespace

sterna_status sterna_thread_create(const sterna_thread_options* options,
                                   sterna_thread_function function, void* argument,
                                   sterna_thread** thread) noexcept {
  const RuntimeScope scope;
  const capi::Program* program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  const sterna_thread_options used =
      options == nullptr ? sterna_thread_options STERNA_THREAD_OPTIONS_DEFAULT : *options;
  if (!is_valid(used, program->team->worker_count()) || function == nullptr ||
      (thread == nullptr && used.is_detached == 0)) {
    return STERNA_INVALID_ARGUMENT;
  }
  threads::ThreadOptions spawned;
  spawned.name = used.name;
  if (used.stack_bytes != 0) {
    spawned.stack_bytes = used.stack_bytes;
  }
  spawned.worker = used.worker;
  spawned.bound = used.is_bound != 0;
  spawned.detached = used.is_detached != 0;
  auto made = program->team->spawn(spawned, function, argument);
  if (!made) {
    return capi::to_status(made.error().code);
  }
  if (thread != nullptr) {
    *thread = reinterpret_cast<sterna_thread*>(made.value());
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_join(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  if (thread == nullptr || (thread_of(thread)->flags & threads::ThreadFlag::detached) != 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (thread_of(thread) == threads::self()) {
    return STERNA_DEADLOCK;
  }
  threads::join(*thread_of(thread));
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_detach(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  if (thread == nullptr || (thread_of(thread)->flags & threads::ThreadFlag::detached) != 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  threads::detach(*thread_of(thread));
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_exit(void) noexcept {
  const RuntimeScope scope;
  threads::Thread* const me = threads::self();
  if (me == nullptr || sterna::memory::rank_slot_of(me) != nullptr) {
    return STERNA_UNSUPPORTED;
  }
  threads::end_current(*me);
}

sterna_thread* sterna_thread_self(void) noexcept {
  return reinterpret_cast<sterna_thread*>(threads::self());
}

void sterna_thread_yield(void) noexcept {
  const RuntimeScope scope;
  threads::yield();
}

void sterna_thread_sleep(uint64_t duration_ns) noexcept {
  const RuntimeScope scope;
  threads::sleep_for(duration_ns);
}

sterna_status sterna_thread_name(const sterna_thread* thread, char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  if (thread == nullptr || buffer == nullptr || bytes == 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  char memory[threads::kNameBytes];
  const std::string_view name = threads::display_name(*thread_of(thread), memory);
  const std::size_t stored = std::min(bytes - 1, name.size());
  std::memcpy(buffer, name.data(), stored);
  buffer[stored] = '\0';
  return stored == name.size() ? STERNA_SUCCESS : STERNA_TRUNCATED;
}

sterna_status sterna_thread_park(uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (threads::self() == nullptr) {
    return STERNA_UNSUPPORTED;
  }
  if (timeout_ns == STERNA_FOREVER) {
    threads::park();
    return STERNA_SUCCESS;
  }
  return threads::park_until(capi::deadline_of(timeout_ns)) ? STERNA_SUCCESS : STERNA_TIMED_OUT;
}

sterna_status sterna_thread_unpark(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  if (thread == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  threads::unpark(*thread_of(thread));
  return STERNA_SUCCESS;
}
