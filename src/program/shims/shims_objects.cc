// Shared memory, semaphores with a name, timers, and streams in memory: they work as ever, and are
// noted as what holds a rank here.
#include <cstdarg>
#include <cstdio>

#include <fcntl.h>
#include <semaphore.h>
#include <sys/shm.h>
#include <time.h>
#include <wchar.h>

#include "program/blocker_table.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

void* shim_shmat(int id, const void* address, int flags) {
  void* const memory = ::shmat(id, address, flags);
  if (memory != reinterpret_cast<void*>(-1)) {
    add_blocker(calling_data(), BlockerKind::mapping, blocker_key(memory),
                "shared memory %d is attached", id);
  }
  return memory;
}

int shim_shmdt(const void* memory) {
  const int result = ::shmdt(memory);
  if (result == 0) {
    remove_blocker(calling_data(), BlockerKind::mapping, blocker_key(memory));
  }
  return result;
}

/// The same name gives the same address, counted; each is noted.
sem_t* shim_sem_open(const char* name, int flags, ...) {
  sem_t* semaphore = SEM_FAILED;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    const auto mode = va_arg(arguments, mode_t);
    const auto value = va_arg(arguments, unsigned);
    va_end(arguments);
    semaphore = on_worker_with_error(calling_data(),
                                     [&] { return ::sem_open(name, flags, mode, value); });
  } else {
    semaphore = on_worker_with_error(calling_data(), [&] { return ::sem_open(name, flags); });
  }
  if (semaphore != SEM_FAILED) {
    add_blocker(calling_data(), BlockerKind::mapping, blocker_key(semaphore),
                "semaphore %s is open", name);
  }
  return semaphore;
}

int shim_sem_close(sem_t* semaphore) {
  RankData& data = calling_data();
  remove_blocker(data, BlockerKind::mapping, blocker_key(semaphore));
  return on_worker_with_error(data, [&] { return ::sem_close(semaphore); });
}

int shim_timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
  RankData& data = calling_data();
  const int result =
      on_worker_with_error(data, [&] { return ::timer_create(clock, event, timer); });
  if (result == 0) {
    add_blocker(data, BlockerKind::process, blocker_key(*timer), "a timer (timer_create) is there");
  }
  return result;
}

int shim_timer_delete(timer_t timer) {
  RankData& data = calling_data();
  remove_blocker(data, BlockerKind::process, blocker_key(timer));
  return on_worker_with_error(data, [&] { return ::timer_delete(timer); });
}

// libc has these streams in its list of the process. They are in memory of the rank, so it stays
// until it has closed them: fclose() strikes them off.

std::FILE* note(std::FILE* file, const char* what) noexcept {
  if (file != nullptr) {
    add_blocker(calling_data(), BlockerKind::file, blocker_key(file), "a stream (%s) is open",
                what);
  }
  return file;
}

std::FILE* shim_fmemopen(void* memory, std::size_t bytes, const char* mode) {
  return note(::fmemopen(memory, bytes, mode), "fmemopen");
}
std::FILE* shim_open_memstream(char** memory, std::size_t* bytes) {
  return note(::open_memstream(memory, bytes), "open_memstream");
}
std::FILE* shim_open_wmemstream(wchar_t** memory, std::size_t* count) {
  return note(::open_wmemstream(memory, count), "open_wmemstream");
}
std::FILE* shim_fopencookie(void* cookie, const char* mode, cookie_io_functions_t functions) {
  return note(::fopencookie(cookie, mode, functions), "fopencookie");
}

}  // namespace

std::span<const Shim> object_shims() {
  static const Shim shims[] = {
      function_shim("shmat", shim_shmat),
      function_shim("shmdt", shim_shmdt),
      function_shim("sem_open", shim_sem_open),
      function_shim("sem_close", shim_sem_close),
      function_shim("timer_create", shim_timer_create),
      function_shim("timer_delete", shim_timer_delete),
      function_shim("fmemopen", shim_fmemopen),
      function_shim("open_memstream", shim_open_memstream),
      function_shim("open_wmemstream", shim_open_wmemstream),
      function_shim("fopencookie", shim_fopencookie),
  };
  return shims;
}

}  // namespace sterna::program
