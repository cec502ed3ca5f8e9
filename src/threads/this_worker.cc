// The only thread-local variables of Sterna: the carrier that this kernel thread is, and the text
// of its last refused call.
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {
constinit thread_local Carrier* current = nullptr;
constinit thread_local char detail[kDetailBytes] = {};
}  // namespace

// Not inlined, and opaque: a caller that switches must not keep the address of the variable.
[[gnu::noinline]] Worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  return current != nullptr ? current->worker.load(std::memory_order_relaxed) : nullptr;
}

[[gnu::noinline]] char* kernel_detail() noexcept {
  asm volatile("" ::: "memory");
  return detail;
}

[[gnu::noinline]] void set_this_carrier(Carrier* carrier) noexcept {
  asm volatile("" ::: "memory");
  current = carrier;
}

}  // namespace sterna::threads
