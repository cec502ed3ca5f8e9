// The only thread-local variable of Sterna: the worker of this kernel thread.
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {
constinit thread_local Worker* current = nullptr;
}  // namespace

// Not inlined, and opaque: a caller that switches must not keep the address of the variable.
[[gnu::noinline]] Worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  return current;
}

[[gnu::noinline]] void set_this_worker(Worker* worker) noexcept {
  asm volatile("" ::: "memory");
  current = worker;
}

}  // namespace sterna::threads
