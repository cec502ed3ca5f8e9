// How kernel threads carry workers: see carrier.h. Nothing here may be inlined into code that keeps
// the address of something thread-local.
#include "threads/carriers/carrier.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/syscall.h"
#include "base/thread_pointer.h"
#include "threads/carriers/kernel_thread.h"
#include "threads/flags.h"
#include "threads/observation/crash.h"
#include "threads/observation/traced.h"
#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

constexpr std::size_t kKernelStackBytes = std::size_t{8} << 20;

void fill_idle_context(Thread& idle) noexcept {
  idle.flags = trace::is_on() ? ThreadFlag::traced : 0;
  if constexpr (kSanitized) {
    sanitizer_begin(idle, true);
  }
}

void* carrier_main(void* carrier) noexcept {
  carry_here(*static_cast<Carrier*>(carrier));
  return nullptr;
}

/// The time of an accounted thread that leaves its processor.
void end_turn_of(Worker& worker, Thread& thread) noexcept {
  if ((thread.flags & ThreadFlag::accounted) != 0) {
    worker.meter.end(thread, cycles());
  }
  thread.on_processor.store(0, std::memory_order_release);  // C of scheduler.cc
}

/// The worker of `me` goes to `spare`; `me` has none. The caller has the worker, and its lock: who
/// claims it must not take `me` for whom it runs.
void let_go(Worker& worker, Thread& me, Carrier& spare) noexcept {
  Carrier& carrier = *worker.carrier.load(std::memory_order_relaxed);
  worker.team.bound_count.fetch_add(1, std::memory_order_relaxed);
  end_turn_of(worker, me);
  me.context.stack = &carrier;
  carrier.worker.store(nullptr, std::memory_order_relaxed);
  carrier.word.store(Carrier::kParked, std::memory_order_relaxed);
  carrier.taken.store(&me, std::memory_order_relaxed);
  me.is_taken.store(true, std::memory_order_release);
  worker.use(spare);
  // Release: who sees that it is not there any more sees that it was taken.
  worker.current.store(&spare.idle, std::memory_order_release);
}

}  // namespace

Result<> start_carrier(Carrier& carrier) noexcept {
  const Worker* const worker = carrier.worker.load(std::memory_order_relaxed);
  const int error = start_kernel_thread(
      carrier.kernel_thread,
      {.stack_bytes = kKernelStackBytes,
       .main = carrier_main,
       .argument = &carrier,
       .processors = worker != nullptr ? first_processors(*worker) : std::nullopt});
  if (error != 0) {
    carrier.kernel_thread = {};
    return system_error(
        "threads: cannot start a kernel thread for a worker (raise the limit of "
        "processes, `ulimit -u`, or use fewer workers)",
        error);
  }
  return Done{};
}

void carry_here(Carrier& carrier) noexcept {
  if (carrier.worker.load(std::memory_order_relaxed) == nullptr) {
    // Of who opened the team, whoever made it.
    (void)pthread_sigmask(SIG_SETMASK, &carrier.team.signal_mask, nullptr);
    use_processors_of(carrier.team);
  }
  set_this_carrier(&carrier);
  carrier.thread_pointer = reinterpret_cast<void*>(thread_pointer());
  carrier.exceptions = exception_globals();
  carrier.error_number = error_number_address();
  (void)pthread_getcpuclockid(pthread_self(), &carrier.processor_clock);
  fill_idle_context(carrier.idle);
  carrier.signal_stack = use_signal_stack();
  carrier.kernel_id.store(static_cast<int>(raw_system_call(SYS_gettid)), std::memory_order_relaxed);
  if (Worker* const worker = carrier.worker.load(std::memory_order_relaxed); worker != nullptr) {
    worker->use(carrier);
    carrier.word.store(Carrier::kRuns, std::memory_order_release);
  } else {
    carrier.become_spare();
    futex_wake(&carrier.word, 1);
  }
  carrier.run();
  carrier.event_files.close_all();
  drop_signal_stack(carrier.signal_stack);
  carrier.kernel_id.store(0, std::memory_order_relaxed);
  set_this_carrier(nullptr);
}

void Carrier::run() noexcept {
  while (await_worker()) {
    worker.load(std::memory_order_relaxed)->turn(*this);
  }
}

bool Carrier::await_worker() noexcept {
  for (;;) {
    const std::uint32_t state = word.load(std::memory_order_acquire);  // A
    if (state == kRuns || state == kEnds) {
      return state == kRuns;
    }
    if (state == kErrand) {
      word.store(kParked, std::memory_order_relaxed);  // For when it comes back.
      return true;
    }
    if (state == kMakes) {
      make_spares(team, true);
      become_spare();
      continue;
    }
    futex_wait(word, state, kNever);
  }
}

bool Carrier::try_reserve() noexcept {
  std::uint32_t spare = kSpare;
  return word.load(std::memory_order_relaxed) == kSpare &&
         word.compare_exchange_strong(spare, kReserved, std::memory_order_acq_rel,
                                      std::memory_order_relaxed);
}

void Carrier::become_spare() noexcept {
  // Sequentially consistent, as in Team::stop(): either that finds a spare, or we find a stop.
  word.store(kSpare, std::memory_order_seq_cst);
  if (team.is_stopped.load(std::memory_order_seq_cst) && try_reserve()) {
    end();
  }
}

void Carrier::give(Worker& its_worker) noexcept {
  worker.store(&its_worker, std::memory_order_relaxed);
  word.store(kRuns, std::memory_order_release);  // A
  futex_wake(&word, 1);
}

void Carrier::end() noexcept {
  word.store(kEnds, std::memory_order_release);
  futex_wake(&word, 1);
}

void Worker::use(Carrier& its_carrier) noexcept {
  exceptions = its_carrier.exceptions;
  error_number = its_carrier.error_number;
  thread_pointer = its_carrier.thread_pointer;
  idle = &its_carrier.idle;
  its_carrier.idle.worker.store(this, std::memory_order_relaxed);
  const std::uint32_t processor = is_disabled.load(std::memory_order_relaxed) ? kAnyWorker
                                  : index < team.processors.size() ? team.processors[index]
                                                                   : kAnyWorker;
  if (its_carrier.processor.load(std::memory_order_relaxed) != processor) {
    bind_carrier(*this, its_carrier);
  }
  carrier.store(&its_carrier, std::memory_order_release);
}

void Worker::drop_reserve() noexcept {
  if (Carrier* const spare = reserve.exchange(nullptr, std::memory_order_seq_cst);
      spare != nullptr) {
    spare->end();
  }
}

void Worker::turn(Carrier& here) noexcept {
  if (busy_begin.load(std::memory_order_relaxed) != 0) {
    settle(here);
  }
  if (team.is_over()) {
    here.word.store(Carrier::kEnds, std::memory_order_relaxed);
    return;
  }
  if (is_disabled.load(std::memory_order_relaxed)) [[unlikely]] {
    (void)hand_over();
  }
  lock.lock();
  Thread& next = pick();
  if (&next == idle) {
    lock.unlock();
    look_for_work();
    return;
  }
  if ((next.flags & ThreadFlag::kernel_bound) != 0) {
    next.worker.store(this, std::memory_order_relaxed);
    current.store(&next, std::memory_order_relaxed);
    (void)prepare_slow_switch(*this, here.idle, next);
    lock.unlock();
    busy_begin.store(cycles(), std::memory_order_relaxed);
    resume_bound(here);
    return;
  }
  run_thread(here, next);
  // This may be another's by now: `here` has come back to its own stack with the worker it has.
  if (Worker& mine = *here.worker.load(std::memory_order_relaxed); mine.resumed != nullptr) {
    mine.busy_begin.store(cycles(), std::memory_order_relaxed);
    mine.resume_bound(here);
  }
}

void Worker::run_thread(Carrier& here, Thread& thread) noexcept {
  busy_begin.store(cycles(), std::memory_order_relaxed);
  switch_contexts(*this, here.idle, thread);
  Worker& mine = *here.worker.load(std::memory_order_relaxed);
  mine.busy_cycles.store(mine.busy_cycles.load(std::memory_order_relaxed) + cycles() -
                             mine.busy_begin.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
  mine.busy_begin.store(0, std::memory_order_relaxed);
}

/// First thing on a carrier that has got a worker from a thread: that thread is queued.
void Worker::settle(Carrier& here) noexcept {
  busy_cycles.store(busy_cycles.load(std::memory_order_relaxed) + cycles() -
                        busy_begin.load(std::memory_order_relaxed),
                    std::memory_order_relaxed);
  busy_begin.store(0, std::memory_order_relaxed);
  Thread* const thread = preempted;
  const bool is_managed = thread != nullptr && (thread->flags & ThreadFlag::managed) != 0;
  preempted = nullptr;
  if (thread != nullptr) {
    end_turn_of(*this, *thread);
  }
  lock.lock();
  current.store(&here.idle, std::memory_order_release);
  if (thread != nullptr && is_preempted_next) {
    queue.push_front(*thread);
  } else if (thread != nullptr && !is_managed) {
    queue.push_back(*thread);
  }
  lock.unlock();
  if (is_managed && !is_preempted_next) {
    team.options.dispatch->ready(*thread, this);
  }
  if (team.sleeper_count.load(std::memory_order_relaxed) != 0 && queue.count() > 1) {
    team.wake_idle(0, static_cast<std::uint32_t>(team.workers.size()));
  }
}

/// Hands the worker to the carrier of the thread that runs next; `here` is a spare then.
void Worker::resume_bound(Carrier& here) noexcept {
  Thread& thread = *resumed;
  Carrier& to = *static_cast<Carrier*>(thread.context.stack);
  resumed = nullptr;
  thread.context.stack = nullptr;
  set_flags(thread, thread.flags & ~ThreadFlag::kernel_bound);
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  team.bound_count.fetch_sub(1, std::memory_order_release);
  use(to);
  here.worker.store(nullptr, std::memory_order_relaxed);
  here.become_spare();
  to.give(*this);
}

namespace {

/// The thread that `worker` runs, if that is in the code of its program; else null. The caller has
/// claimed the worker, and holds its lock from outside: so it stays, as its entry waits for us.
Thread* find_in_user(Worker& worker) noexcept {
  Thread* const thread = worker.current.load(std::memory_order_relaxed);
  // Acquire: all that it did here.
  const bool is_user = thread != nullptr && thread->in_user.load(std::memory_order_acquire);
  return is_user ? thread : nullptr;
}

}  // namespace

bool try_take_over(Worker& worker) noexcept {
  worker.border.claim.store(1, std::memory_order_seq_cst);
  Carrier* spare = nullptr;
  if (worker.lock.try_lock_from_outside(kTickPauses)) {
    Thread* const thread = find_in_user(worker);
    spare = thread != nullptr ? take_spare(worker.team) : nullptr;
    if (spare != nullptr) {
      thread->activity.store(Activity::blocked, std::memory_order_relaxed);
      let_go(worker, *thread, *spare);
    }
    worker.lock.unlock_from_outside();
  }
  worker.border.claim.store(0, std::memory_order_release);
  futex_wake(&worker.border.claim, 1);
  if (spare == nullptr) {
    return false;
  }
  worker.team.preemptor->taken_count.fetch_add(1, std::memory_order_relaxed);
  spare->give(worker);
  return true;
}

void enter_claimed(Thread& me) noexcept {
  Border& border = border_of(*me.worker.load(std::memory_order_relaxed));
  // Acquire: of a decision against us, all that was written for it.
  while (!me.is_taken.load(std::memory_order_acquire) &&
         border.claim.load(std::memory_order_acquire) != 0) {
    futex_wait(border.claim, 1, kNever);
  }
  if (me.is_taken.load(std::memory_order_acquire)) {
    come_back(me);
  }
}

void come_back(Thread& me) noexcept {
  Carrier& carrier = *static_cast<Carrier*>(me.context.stack);
  Worker& home = *me.worker.load(std::memory_order_relaxed);
  const std::uintptr_t its_pointer = thread_pointer();
  if ((me.flags & ThreadFlag::own_locals) == 0) {  // A rank's.
    set_thread_pointer(reinterpret_cast<std::uintptr_t>(carrier.thread_pointer));
  }
  carrier.taken.store(nullptr, std::memory_order_relaxed);
  me.is_taken.store(false, std::memory_order_relaxed);
  set_flags(me, me.flags | ThreadFlag::kernel_bound);
  me.activity.store(Activity::ready, std::memory_order_relaxed);
  if ((me.flags & ThreadFlag::managed) != 0) {
    home.team.options.dispatch->ready(me, &home);
  } else {
    send_home(home, me);
  }
  check(carrier.await_worker(), "a team runs on while threads come back to it");
  if ((me.flags & ThreadFlag::own_locals) == 0) {
    set_thread_pointer(its_pointer);
  }
}

bool enter_blocking() noexcept {
  Thread* const me = self();
  if (me == nullptr || me->is_taken.load(std::memory_order_relaxed)) {
    return false;
  }
  const bool was_user = enter_runtime(*me);
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  Carrier* const spare = reserve_carrier(worker.team);
  if (spare == nullptr) {
    if (was_user) {
      leave_runtime(*me);
    }
    return false;
  }
  me->activity.store(Activity::blocked, std::memory_order_relaxed);
  worker.lock.lock();
  let_go(worker, *me, *spare);
  worker.lock.unlock();
  spare->give(worker);
  me->in_user.store(was_user, std::memory_order_relaxed);
  return true;
}

void leave_blocking() noexcept {
  Thread* const me = self();
  if (me == nullptr || !me->is_taken.load(std::memory_order_relaxed)) {
    return;
  }
  const bool was_user = me->in_user.load(std::memory_order_relaxed);
  me->in_user.store(false, std::memory_order_relaxed);  // No handler comes back for us.
  if (me->is_taken.load(std::memory_order_relaxed)) {
    come_back(*me);
  }
  if (was_user) {
    leave_runtime(*me);
  }
}

}  // namespace sterna::threads
