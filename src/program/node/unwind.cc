// The unwinder (libgcc_s) asks where an address has its unwind table: it sees these definitions of
// the executable instead of libc's, and so finds the tables of ranks' private objects.
#include <atomic>

#include <dlfcn.h>
#include <link.h>

#include "program/elf/find_object.h"

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  using Function = int (*)(void*, dl_find_object*);
  if (!sterna::program::is_of_rank(address)) {
    // Looked up once; two threads that do it at once find the same.
    static std::atomic<Function> libc_function{nullptr};
    Function function = libc_function.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "_dl_find_object"));
      libc_function.store(function, std::memory_order_relaxed);
    }
    return function(address, result);
  }
  const sterna::program::FoundObject found = sterna::program::find_object(address);
  if (found.object == nullptr || found.object->file.unwind_table() == 0) {
    return -1;
  }
  *result = {};
  result->dlfo_map_start = reinterpret_cast<void*>(found.image);
  result->dlfo_map_end = reinterpret_cast<void*>(found.image + found.object->file.image_bytes());
  result->dlfo_eh_frame = reinterpret_cast<void*>(found.image + found.object->file.unwind_table());
  return 0;
}
