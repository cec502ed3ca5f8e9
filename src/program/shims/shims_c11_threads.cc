// Kernel threads of a rank that it creates with <threads.h>: those of pthread_create, by the names
// of C11. To libc they are no threads of C11: their results come as pointers.
#include <cerrno>
#include <cstdint>

#include <threads.h>

#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/shims/threads.h"

namespace sterna::program {
namespace {

/// In the rank's heap, freed by the thread.
struct Start {
  thrd_start_t function;
  void* argument;
  memory::RankSlot* slot;
};

int result_of(int number) noexcept {
  switch (number) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

void* pointer_of(int result) noexcept {
  return reinterpret_cast<void*>(std::intptr_t{result});
}

void* run_thread(void* value) {
  auto* const allocated = static_cast<Start*>(value);
  const Start start = *allocated;
  rank_free(*start.slot, allocated);
  return pointer_of(start.function(start.argument));
}

int shim_create(thrd_t* thread, thrd_start_t function, void* argument) {
  memory::RankSlot& slot = *calling_data().slot;
  auto* const start = static_cast<Start*>(rank_allocate(slot, sizeof(Start)));
  if (start == nullptr) {
    return thrd_nomem;
  }
  *start = {function, argument, &slot};
  const int number = create_thread(thread, nullptr, run_thread, start);
  if (number != 0) {
    rank_free(slot, start);
  }
  return result_of(number);
}

int shim_join(thrd_t thread, int* result) {
  void* pointer = nullptr;
  const int number = join_thread(thread, &pointer);
  if (number == 0 && result != nullptr) {
    *result = static_cast<int>(reinterpret_cast<std::intptr_t>(pointer));
  }
  return result_of(number);
}

int shim_detach(thrd_t thread) {
  return result_of(detach_thread(thread));
}

[[noreturn]] void shim_exit(int result) {
  exit_thread(pointer_of(result));
}

}  // namespace

std::span<const Shim> c11_thread_shims() {
  static const Shim shims[] = {
      function_shim("thrd_create", shim_create),
      function_shim("thrd_join", shim_join),
      function_shim("thrd_detach", shim_detach),
      function_shim("thrd_exit", shim_exit),
  };
  return shims;
}

}  // namespace sterna::program
