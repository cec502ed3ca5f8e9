// Preemption on the kernel thread that is preempted: the handler of the signal, and the way to give
// way without it. preempt.cc has the ticker's side. The handler comes between any two steps of its
// thread: carriers/border_model_test.cc.
#include "threads/preemption/preempt_signal.h"

#include <cstring>

#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/check.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/thread_pointer.h"
#include "memory/rank_slot.h"
#include "threads/control/switch_hook.h"
#include "threads/flags.h"
#include "threads/preemption/preempt.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

// Ignored where it is not handled, not used by debuggers, and passed on by them: what other
// runtimes that preempt have settled on.
constexpr int kSignal = SIGURG;
// So many times a thread is left alone because it is in a library that has locks.
constexpr std::uint32_t kDeclinesMax = 8;

struct CodeRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
constexpr std::size_t kRangesMax = 32;
// Written by the first install_preemption(), before the first signal; constant then.
constinit CodeRange locked_code[kRangesMax] = {};
constinit std::size_t locked_code_count = 0;
constinit struct sigaction others_action = {};
constinit std::atomic<bool> is_installed{false};

int note_locked_code(dl_phdr_info* info, std::size_t, void*) {
  constexpr const char* kNames[] = {"/libc.so",     "/libc-",      "/ld-linux",   "/libpthread",
                                    "/libgcc_s.so", "/libstdc++.", "/libtsan.so", "/libasan.so",
                                    "/libubsan.so", "/liblsan.so"};
  bool is_one = false;
  for (const char* const name : kNames) {
    is_one = is_one || std::strstr(info->dlpi_name, name) != nullptr;
  }
  for (int i = 0; is_one && i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 && locked_code_count < kRangesMax) {
      const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
      locked_code[locked_code_count++] = {begin, begin + part.p_memsz};
    }
  }
  return 0;
}

bool is_locked_code(std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < locked_code_count; ++i) {
    if (address - locked_code[i].begin < locked_code[i].end - locked_code[i].begin) {
      return true;
    }
  }
  return false;
}

struct Registers {
  std::uintptr_t stack_pointer;
  std::uintptr_t instruction;
};

Registers registers_of(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]),
          static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP])};
#else
  return {static_cast<std::uintptr_t>(context.uc_mcontext.sp),
          static_cast<std::uintptr_t>(context.uc_mcontext.pc)};
#endif
}

enum class Way : std::uint8_t {
  stay,
  next,  // Gives way to a higher class, and is the next of its own.
  last,  // Its slice is over.
};

PreemptMode mode_of(const Thread& thread, const TeamState& team) noexcept {
  const std::uint32_t own = thread.preempt_off.load(std::memory_order_relaxed) & kPreemptModeBits;
  return own == 0               ? team.options.preempt
         : own == kPreemptSlice ? PreemptMode::slice
                                : PreemptMode::communication;
}

Way way_of(const Thread& thread, const TeamState& team, std::uint8_t wish) noexcept {
  const int waiting = (wish & Wish::priority) - 1;
  const int own = thread.priority.load(std::memory_order_relaxed);
  const PreemptMode mode = mode_of(thread, team);
  if (waiting < own || mode == PreemptMode::none) {
    return Way::stay;
  }
  if (interrupts(static_cast<std::uint8_t>(waiting), static_cast<std::uint8_t>(own))) {
    return Way::next;
  }
  const bool is_over = mode == PreemptMode::slice && (wish & Wish::slice_over) != 0;
  return is_over || (wish & Wish::asked) != 0 ? Way::last : Way::stay;
}

bool may_be_preempted(const Thread& thread) noexcept {
  return (thread.preempt_off.load(std::memory_order_relaxed) & ~kPreemptModeBits) == 0;
}

/// The handler of a stray makes it ready, for which these may need memory.
bool needs_memory(const Thread& thread) noexcept {
  return thread.is_taken.load(std::memory_order_relaxed) &&
         (thread.flags & (ThreadFlag::managed | ThreadFlag::traced)) != 0;
}

/// Whether the thread is at a bad place to be stopped: then the next tick tries again, and, in the
/// end, does not ask. Sanitizers' own code must never be left half done, nor malloc be entered
/// twice.
bool declines(Worker& worker, const Thread& thread, std::uintptr_t instruction) noexcept {
  if (!is_locked_code(instruction)) {
    return false;
  }
  return kSanitized || needs_memory(thread) || ++worker.declined_count <= kDeclinesMax;
}

/// In the handler, on the kernel thread of `me`, which was entered. Returns when a worker has
/// picked it; at once if there is no spare carrier.
void leave_worker(Worker& worker, Thread& me, Way way) noexcept {
  TeamState& team = worker.team;
  Carrier* const spare = worker.reserve.exchange(nullptr, std::memory_order_acquire);
  if (spare == nullptr) {
    return;
  }
  Carrier& carrier = *worker.carrier.load(std::memory_order_relaxed);
  if ((me.flags & ThreadFlag::hooked) != 0) {
    run_hooks_before(me);
  }
  STERNA_PROBE2(thread_preempt, &me, worker.index);
  worker.declined_count = 0;
  worker.border.wish.store(Wish::none, std::memory_order_relaxed);
  team.bound_count.fetch_add(1, std::memory_order_relaxed);
  team.preemptor->preempted_count.fetch_add(1, std::memory_order_relaxed);
  me.context.stack = &carrier;
  set_flags(me, me.flags | ThreadFlag::kernel_bound);
  carrier.worker.store(nullptr, std::memory_order_relaxed);
  carrier.word.store(Carrier::kParked, std::memory_order_relaxed);
  worker.preempted = &me;
  worker.is_preempted_next = way == Way::next;
  worker.use(*spare);
  spare->give(worker);
  check(carrier.await_worker(), "a team runs on while threads are preempted");
  if ((me.flags & ThreadFlag::hooked) != 0) {
    run_hooks_after(me);
  }
}

/// On the alternate stack, perhaps on the thread pointer of a rank: no libc call that has state, no
/// errno, no thread-local storage.
void handle(int number, siginfo_t* info, void* context) noexcept {
  const Registers registers = registers_of(*static_cast<const ucontext_t*>(context));
  auto* const me = reinterpret_cast<Thread*>(memory::descriptor_address(registers.stack_pointer));
  if (info->si_code != SI_TKILL) {
    if ((others_action.sa_flags & SA_SIGINFO) != 0) {
      others_action.sa_sigaction(number, info, context);
    } else if (others_action.sa_handler != SIG_DFL && others_action.sa_handler != SIG_IGN) {
      others_action.sa_handler(number);
    }
    return;
  }
  if (me == nullptr || !me->in_user.load(std::memory_order_relaxed) || !may_be_preempted(*me)) {
    return;
  }
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  const bool is_stray = me->is_taken.load(std::memory_order_relaxed);
  const Way way = way_of(*me, worker.team, worker.border.wish.load(std::memory_order_relaxed));
  if ((way == Way::stay && !is_stray) || declines(worker, *me, registers.instruction) ||
      worker.team.is_stopped.load(std::memory_order_relaxed)) {
    return;
  }
  me->is_interrupted = true;
  (void)enter_runtime(*me);
  if (!is_stray && !me->is_taken.load(std::memory_order_relaxed)) {
    // Perhaps another one, if it had to wait for a claim.
    leave_worker(*me->worker.load(std::memory_order_relaxed), *me, way);
  }
  me->is_interrupted = false;
  // As leave_runtime(), but for wishes: it has just begun its slice. Perhaps without a worker: on
  // an errand.
  me->in_user.store(true, std::memory_order_release);
}

}  // namespace

void send_preempt_signal(const Carrier& carrier) noexcept {
  if (const int id = carrier.kernel_id.load(std::memory_order_relaxed); id != 0) {
    raw_system_call(SYS_tgkill, raw_system_call(SYS_getpid), id, kSignal);
  }
}

void install_preemption() noexcept {
  if (is_installed.exchange(true, std::memory_order_acq_rel)) {
    return;
  }
  dl_iterate_phdr(note_locked_code, nullptr);
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    sigdelset(&action.sa_mask, fault);
  }
  (void)sigaction(kSignal, &action, &others_action);
}

void leave_wished(Thread& me) noexcept {
  if (!may_be_preempted(me)) {
    return;
  }
  (void)enter_runtime(me);
  const std::uintptr_t its_pointer = thread_pointer();
  const bool is_rank = memory::rank_slot_of(its_pointer) != nullptr;
  if (is_rank) {
    set_thread_pointer(reinterpret_cast<std::uintptr_t>(worker_thread_pointer()));
  }
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  const Way way =
      way_of(me, worker.team, worker.border.wish.exchange(Wish::none, std::memory_order_relaxed));
  if (way == Way::last) {
    yield();
  } else if (way == Way::next) {
    worker.lock.lock();
    worker.inbox.drain_to(worker.queue);
    if (worker.queue.highest() > me.priority.load(std::memory_order_relaxed)) {
      worker.queue.push_front(me);
      // Those of a higher priority may turn out to be held.
      if (Thread& next = worker.pick(); &next != &me) {
        switch_contexts(worker, me, next);
      } else {
        worker.lock.unlock();
      }
    } else {
      worker.lock.unlock();
    }
  }
  if (is_rank) {
    set_thread_pointer(its_pointer);
  }
  leave_runtime(me);
}

}  // namespace sterna::threads
