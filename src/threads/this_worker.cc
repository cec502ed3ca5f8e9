// The only thread-local variables of Sterna: the worker of this kernel thread, and the text of its
// last refused call.
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {
constinit thread_local Worker* current = nullptr;
constinit thread_local char detail[kDetailBytes] = {};
}  // namespace

// Not inlined, and opaque: a caller that switches must not keep the address of the variable.
[[gnu::noinline]] Worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  return current;
}

[[gnu::noinline]] char* kernel_detail() noexcept {
  asm volatile("" ::: "memory");
  return detail;
}

[[gnu::noinline]] void set_this_worker(Worker* worker) noexcept {
  asm volatile("" ::: "memory");
  current = worker;
}

}  // namespace sterna::threads
