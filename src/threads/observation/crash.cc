// What happens on a fault: a stack overflow is named as such, then whoever knows more is asked.
// Everything here runs in a signal handler, perhaps on the thread pointer of a rank: no libc call
// that has state, no errno, no thread-local storage.
#include "threads/observation/crash.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/syscall.h"
#include "memory/rank_slot.h"
#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::threads {
namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// Process-wide, because signal handlers are. Relaxed: set before what may fault.
constinit std::atomic<void (*)(const CrashInfo&)> crash_callback{nullptr};

/// A line of text in a buffer of fixed size, for write(2).
class Line {
 public:
  Line& add(std::string_view text) noexcept {
    const std::size_t bytes = std::min(text.size(), sizeof buffer_ - used_);
    std::memcpy(buffer_ + used_, text.data(), bytes);
    used_ += bytes;
    return *this;
  }
  Line& add_number(std::uint64_t number) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return add({digits + at, sizeof digits - at});
  }
  void write() const noexcept {
    raw_system_call(SYS_write, 2, reinterpret_cast<long>(buffer_), static_cast<long>(used_));
  }

 private:
  char buffer_[512];
  std::size_t used_ = 0;
};

std::uintptr_t stack_pointer_of(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#else
  return static_cast<std::uintptr_t>(context.uc_mcontext.sp);
#endif
}

/// Whether the address is in the guard below the stack, or so near below that a large frame
/// explains it.
bool is_overflow(const Thread& thread, std::uintptr_t address) noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(thread.stack_base);
  const std::size_t guard_bytes = memory::is_rank_address(low) ? 1 << 20 : memory::kPageBytes;
  return address < low && low - address <= guard_bytes;
}

void report_overflow(const Thread& thread) noexcept {
  char buffer[kNameBytes];
  Line line;
  line.add("sterna: stack overflow in thread '").add(display_name(thread, buffer));
  line.add("': its stack has ").add_number(thread.stack_bytes);
  line.add(" bytes. Give it a larger one (stack_bytes of its options; for a rank, the option ");
  line.add("--stack-size), or look for a recursion without end and for large local arrays.\n");
  line.write();
}

void handle_fault(int signal, siginfo_t* info, void* context) noexcept {
  const std::uintptr_t stack_pointer = stack_pointer_of(*static_cast<ucontext_t*>(context));
  // The iso space is arithmetic, but the slot may not be mapped when the stack pointer is wild:
  // then the second fault takes the default action, below.
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  (void)sigaction(signal, &fallback, nullptr);
  const auto address = signal == SIGABRT ? 0 : reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto* const thread =
      reinterpret_cast<const Thread*>(memory::descriptor_address(stack_pointer));
  if (thread != nullptr && (signal == SIGSEGV || signal == SIGBUS) &&
      is_overflow(*thread, address)) {
    report_overflow(*thread);
  }
  const Worker* const worker =
      thread != nullptr ? thread->worker.load(std::memory_order_relaxed) : nullptr;
  if (auto* const callback = crash_callback.load(std::memory_order_relaxed); callback != nullptr) {
    callback({.signal = signal,
              .address = address,
              .thread = thread,
              .worker = worker,
              .signal_context = context});
  }
  // The default action comes when the faulting instruction runs again, or, if the signal was sent
  // (abort, kill), now.
  if (signal == SIGABRT || info->si_code <= 0) {
    raw_system_call(SYS_tgkill, raw_system_call(SYS_getpid), raw_system_call(SYS_gettid), signal);
  }
}

}  // namespace

void install_crash_handler(void (*callback)(const CrashInfo&)) noexcept {
  crash_callback.store(callback, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    (void)sigaction(signal, &action, nullptr);
  }
}

void report_stack_overflows() noexcept {
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && (present.sa_flags & SA_SIGINFO) == 0 &&
        present.sa_handler == SIG_DFL) {
      (void)sigaction(signal, &action, nullptr);
    }
  }
}

void* use_signal_stack() noexcept {
  void* const memory = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;  // Overflows then end the process without a name.
  }
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStackBytes;
  (void)sigaltstack(&stack, nullptr);
  return memory;
}

void drop_signal_stack(void* stack) noexcept {
  if (stack == nullptr) {
    return;
  }
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  (void)sigaltstack(&none, nullptr);
  (void)::munmap(stack, kSignalStackBytes);
}

}  // namespace sterna::threads
