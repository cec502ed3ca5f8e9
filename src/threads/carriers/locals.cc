// Threads with thread-local variables of their own: see locals.h.
#include "threads/carriers/locals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>

#include <link.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include "base/syscall.h"
#include "base/thread_pointer.h"
#include "threads/carriers/kernel_thread.h"
#include "threads/control/cancel.h"
#include "threads/flags.h"
#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

// For destructors; the variables themselves, which libc puts there as well, come on top.
constexpr std::size_t kOwnerStackBytes = (std::size_t{256} << 10) * kStackFactor;
// Whether the owner has ended: so many looks, then one after each pause.
constexpr int kLooksAtOnce = 20;
constexpr std::uint64_t kFirstPauseNs = 10'000;
constexpr std::uint64_t kLastPauseNs = 1'000'000;

int add_thread_local_bytes(dl_phdr_info* info, std::size_t, void* sum) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (const auto& part = info->dlpi_phdr[i]; part.p_type == PT_TLS) {
      *static_cast<std::size_t*>(sum) += part.p_memsz + part.p_align;
    }
  }
  return 0;
}

std::size_t owner_stack_bytes() noexcept {
  std::size_t bytes = kOwnerStackBytes;
  dl_iterate_phdr(add_thread_local_bytes, &bytes);
  return (bytes + memory::kPageBytes - 1) / memory::kPageBytes * memory::kPageBytes;
}

/// The kernel writes the processor of the owner into its block, which is not where the thread runs:
/// libc and others ask the system instead when it does not (sched_getcpu).
void forget_rseq() noexcept {
#if defined(RSEQ_SIG) && defined(SYS_rseq)
  constexpr unsigned kUnregister = 1;
  constexpr unsigned kRegisteredBytes = 32;
  if (__rseq_size != 0) {
    raw_system_call(SYS_rseq, static_cast<long>(thread_pointer()) + __rseq_offset,
                    std::max(__rseq_size, kRegisteredBytes), kUnregister, RSEQ_SIG);
  }
#endif
}

/// Until the block is given back. What sanitizers note would be noted in it: no call but the raw
/// one.
STERNA_NOT_INSTRUMENTED void lend(Locals& locals) noexcept {
  auto* const word = reinterpret_cast<std::uint32_t*>(&locals.word);
  const auto address = reinterpret_cast<long>(word);
  __atomic_store_n(word, Locals::kLent, __ATOMIC_RELEASE);
  raw_system_call(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != Locals::kReturned) {
    raw_system_call(SYS_futex, address, FUTEX_WAIT_PRIVATE, Locals::kLent);
  }
}

void* owner_main(void* argument) noexcept {
  auto& locals = *static_cast<Locals*>(argument);
  // A handler of a signal would run on the variables of the thread, beside it.
  sigset_t all;
  sigset_t former;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &former);
  forget_rseq();
  sanitizer_begin(locals.idle, true);
  locals.pointer.store(thread_pointer(), std::memory_order_release);
  sanitizer_lends(locals.idle);
  lend(locals);
  sanitizer_has_back(locals.idle);
  (void)pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return nullptr;
}

}  // namespace

Result<Locals*> make_locals() noexcept {
  auto* const made = new (std::nothrow) Locals;
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  const int error = start_kernel_thread(
      made->owner, {.stack_bytes = owner_stack_bytes(), .main = owner_main, .argument = made});
  if (error != 0) {
    delete made;
    return system_error(
        "threads: cannot start the kernel thread that owns the locals of a thread (raise the limit "
        "of processes, `ulimit -u`, or let fewer threads have their own)",
        error);
  }
  while (made->word.load(std::memory_order_acquire) == Locals::kStarts) {
    futex_wait(made->word, Locals::kStarts, kNever);
  }
  return made;
}

void give_locals(Thread& thread, Locals& locals) noexcept {
  thread.locals = &locals;
  thread.end_flags |= EndFlag::belongings;
  set_flags(thread, thread.flags | ThreadFlag::own_locals);
}

void end_locals(Locals& locals) noexcept {
  const Uncancellable waits{self()};
  locals.word.store(Locals::kReturned, std::memory_order_release);
  futex_wake(&locals.word, 1);
  // Looks, not a signal: the end of a kernel thread is libc's, which tells nobody else. Usually it
  // takes some microseconds, of this very processor.
  int looks = 0;
  std::uint64_t pause_ns = kFirstPauseNs;
  while (pthread_tryjoin_np(locals.owner, nullptr) == EBUSY) {
    if (++looks <= kLooksAtOnce) {
      yield();
      raw_system_call(SYS_sched_yield);
    } else {
      sleep_for(pause_ns);
      pause_ns = std::min(2 * pause_ns, kLastPauseNs);
    }
  }
  delete &locals;
}

void end_own_locals(Thread& me) noexcept {
  Locals& locals = *me.locals;
  leave_locals(*me.worker.load(std::memory_order_relaxed), me);
  end_locals(locals);
}

std::uintptr_t pointer_for(const Worker& worker, const Thread& thread) noexcept {
  // Acquire: TSan, too, sees what the owner did before it lent them.
  return (thread.flags & ThreadFlag::own_locals) != 0
             ? thread.locals->pointer.load(std::memory_order_acquire)
             : reinterpret_cast<std::uintptr_t>(worker.thread_pointer);
}

}  // namespace sterna::threads
