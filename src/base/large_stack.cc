// Runs main() on a stack of its own if the one it has is too small.
#include "base/large_stack.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "base/syscall.h"

namespace sterna {

namespace {

constexpr std::size_t kGuardBytes = 64 << 10;

struct Call {
  FunctionRef<int()> function;
  ucontext_t caller;
  ucontext_t callee;
  int result;
};

// makecontext() passes ints only.
void run(unsigned high, unsigned low) {
  auto* const call = reinterpret_cast<Call*>(static_cast<std::uintptr_t>(high) << 32 | low);
  call->result = call->function();
}

// The system takes the limit for the size of their stacks, too.
void give_threads_large_stacks() noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    if (pthread_attr_setstacksize(&attributes, kLargeStackBytes) == 0) {
      static_cast<void>(pthread_setattr_default_np(&attributes));
    }
    pthread_attr_destroy(&attributes);
  }
}

}  // namespace

int on_large_stack(FunctionRef<int()> function) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLargeStackBytes) {
    return function();
  }
  give_threads_large_stacks();
  const std::size_t bytes = kGuardBytes + kLargeStackBytes;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || ::mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    std::fprintf(stderr,
                 "sterna: the stack may have %lu KiB (ulimit -s), too few, and there is no memory "
                 "for another: %s\n",
                 static_cast<unsigned long>(limit.rlim_cur >> 10),
                 std::strerror(last_error_number()));
    return 1;
  }
  Call call{.function = function, .caller = {}, .callee = {}, .result = 1};
  ::getcontext(&call.callee);
  call.callee.uc_stack.ss_sp = memory;
  call.callee.uc_stack.ss_size = bytes;
  call.callee.uc_link = &call.caller;
  const auto address = reinterpret_cast<std::uintptr_t>(&call);
  ::makecontext(&call.callee, reinterpret_cast<void (*)()>(run), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  ::swapcontext(&call.caller, &call.callee);
  ::munmap(memory, bytes);
  return call.result;
}

}  // namespace sterna
