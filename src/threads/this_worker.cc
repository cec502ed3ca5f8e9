// The thread-local variables of this layer: the carrier that this kernel thread is, the text of its
// last refused call, and whether it is in the runtime, if a rank has created it. Read on the stacks
// of kernel threads only: a user thread may have variables of its own (locals.h).
#include <utility>

#include "threads/foreign.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {

constinit std::atomic<bool> has_foreign_threads{false};

namespace {
constinit thread_local Carrier* current = nullptr;
constinit thread_local char detail[kDetailBytes] = {};
constinit thread_local bool is_in_runtime = false;
}  // namespace

[[gnu::noinline]] Thread* self_of_rank(void* frame) noexcept {
  return reinterpret_cast<Thread*>(
      memory::descriptor_address(reinterpret_cast<std::uintptr_t>(frame)));
}

// Not inlined, and opaque: a caller that switches must not keep the address of the variable.
[[gnu::noinline]] Worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  if (const Thread* const me = self(); me != nullptr) {  // Perhaps on a pointer of its own.
    return me->worker.load(std::memory_order_relaxed);
  }
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

[[gnu::noinline]] bool is_foreign_in_runtime() noexcept {
  asm volatile("" ::: "memory");
  return is_in_runtime;
}

[[gnu::noinline]] bool change_foreign_side(bool in_runtime) noexcept {
  asm volatile("" ::: "memory");
  return std::exchange(is_in_runtime, in_runtime);
}

}  // namespace sterna::threads
