// How threads run and end; birth.cc has how they come to be, join.cc how they are joined.
//
// The word Thread::joiner: 0 nobody yet; a Waiter: who joins; or one of Joined. The thread's end
// is published in it after the last switch away from its stack, so a joiner may reuse or unmap the
// memory at once. One exception, for speed: when the joiner is suspended on this very worker, the
// dying thread switches directly to it; the joiner then runs on this kernel thread after that
// switch.
#include "threads/life/life.h"

#include "base/check.h"
#include "base/probe.h"
#include "threads/carriers/locals.h"
#include "threads/control/control.h"
#include "threads/observation/traced.h"
#include "threads/queues/kept.h"
#include "threads/scheduler.h"
#include "threads/seeds/seed.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

/// What comes after the last switch away from any thread.
[[gnu::always_inline]] inline void leave_stack(TeamState& team, Worker* here,
                                               Thread& thread) noexcept {
  count_end(team, here);
  thread.activity.store(Activity::none, std::memory_order_relaxed);
  if ((thread.end_flags & EndFlag::after_exit) != 0) [[unlikely]] {
    thread.after_exit(thread.after_exit_argument);
  }
}

/// After the last switch away from a thread that ended, its joiner was switched to directly.
void after_end_joined(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  leave_stack(team, worker_here(team), thread);
  if ((thread.flags & ThreadFlag::placed) != 0) [[unlikely]] {
    end_placed(team, thread);
  }
}

[[gnu::noinline]] void end_detached(Thread& thread) noexcept {
  const bool is_seed = (thread.flags & ThreadFlag::seed) != 0;
  const bool is_cancelled = (thread.end_flags & EndFlag::cancelled) != 0;
  void* const seed = thread.argument;
  TeamState& team = *thread.team->state();
  void* const sibling =
      is_seed && (thread.flags & ThreadFlag::placed) != 0 ? thread.entity : nullptr;
  reap(worker_here(team), thread);
  if (sibling != nullptr) {
    team.options.dispatch->remove_sibling(sibling);
  }
  if (is_seed) {
    finish_seed(seed, is_cancelled);
  }
}

void after_end(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  Worker* const here = worker_here(team);
  leave_stack(team, here, thread);
  if ((thread.flags & ThreadFlag::placed) != 0) {
    end_placed(team, thread);
  }
  if ((thread.flags & ThreadFlag::detached) != 0) {
    end_detached(thread);
    return;
  }
  // A: the joiner sees all that the thread did. Acquire, for the joiner's record.
  const std::uintptr_t joiner = thread.joiner.exchange(Joined::ended, std::memory_order_acq_rel);
  if (joiner == Joined::detached) {
    reap(here, thread);
  } else if (joiner != 0) {
    Waiter::from_bits(joiner).signal();
  }
}

}  // namespace

void reap_extras(Thread& thread) noexcept {
  memory::remove_stack_guard(thread.stack_base, thread.guard_bytes);
  thread.guard_bytes = 0;
}

namespace {

/// Cleanups, keys, thread-local variables: each may still use the thread. All are null again for
/// the next one.
[[gnu::noinline]] void end_belongings(Thread& me) noexcept {
  while (Cleanup* const innermost = me.cleanup) {
    me.cleanup = innermost->outer;
    innermost->function(innermost->argument);
  }
  if (me.keys != nullptr) {
    end_keys(me);
  }
  if (TeamState& team = *me.team->state(); team.passing.load(std::memory_order_relaxed) == &me)
      [[unlikely]] {
    (void)unhold_all(*team.handle);  // Nobody else could run any more.
  }
  if ((me.flags & ThreadFlag::own_locals) != 0) {
    end_own_locals(me);
  }
  delete[] me.error_text;
  me.error_text = nullptr;
  if (me.seeds != nullptr) {
    join_seeds(me);  // Of those that ran just now.
  }
}

/// What an end begins with, on the stack of the thread. Straight below the bottom frame: a cleanup
/// may lie in the frame of an entry that has returned.
[[gnu::always_inline]] inline void end_inside(Thread& me) noexcept {
  if ((me.flags & ThreadFlag::traced) != 0) [[unlikely]] {
    trace_ended(me);
  }
  if (me.seeds != nullptr) [[unlikely]] {
    join_seeds(me);
  }
  if ((me.end_flags & EndFlag::belongings) != 0) [[unlikely]] {
    end_belongings(me);
  }
}

/// The rest of it. The bottom frame jumps here, or has it inside: a call that never returns would
/// spoil the prediction of a return, that of the joiner.
[[noreturn, gnu::always_inline]] inline void end_here(Thread& me) noexcept {
  STERNA_PROBE1(thread_exit, &me);
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  worker.lock.lock();
  PostFunction post = after_end;
  Thread* next = nullptr;
  // Acquire: the joiner published itself; what it wrote before is seen.
  const std::uintptr_t bits = me.joiner.load(std::memory_order_acquire);
  if ((bits & Waiter::kSuspendedTag) != 0 && (me.flags & ThreadFlag::managed) == 0) {
    Thread* const joiner = Waiter::from_bits(bits).thread();
    // Only we may wake it, so it stays suspended, and its home stays its home.
    if (joiner->worker.load(std::memory_order_relaxed) == &worker &&
        (joiner->flags & ThreadFlag::managed) == 0 && !worker.queue.has_levels() &&
        joiner->hold.load(std::memory_order_relaxed) == Hold::none) {
      STERNA_PROBE1(thread_wake, joiner);
      joiner->activity.store(Activity::ready, std::memory_order_relaxed);
      next = joiner;
      post = after_end_joined;
      if ((me.flags & ThreadFlag::placed) == 0 && (me.end_flags & EndFlag::after_exit) == 0)
          [[likely]] {
        // Nothing is left to do after the switch: whoever counts the living counts the joiner too,
        // which cannot end before.
        post = nullptr;
        count_end(worker.team, &worker);
        me.activity.store(Activity::none, std::memory_order_relaxed);
      }
    }
  }
  if (post != nullptr) {
    worker.post_thread = &me;
    worker.post = post;
  }
  leave_for_good(worker, me, next != nullptr ? *next : worker.pick());
}

#if defined(__x86_64__)
/// The end of one with nothing to do inside, whose joiner waits on its worker, and with whom
/// nothing else is special: most. If it is not so it returns, and nothing has happened. On its way
/// is no call that returns: so the bottom frame keeps two registers for its caller, not five.
///
/// Of births and joins in turn each step would wait for the one before: the joiner's word gives the
/// joiner, whose context gives its stack pointer, and its frame the thread that has ended, whose
/// memory is that of the next one. Each of the four comes back from memory in 8 cycles at best. So
/// the joiner goes on, if it is so, with the stack pointer of who switched to this thread
/// (`starter`), and with the thread that switches to it (join.h): 20 ns instead of 22.
[[gnu::always_inline]] inline void end_to_joiner(Worker& worker, Thread& me,
                                                 void* starter) noexcept {
  constexpr std::uint32_t kUnfit = kSlowSwitchFlags | ThreadFlag::placed;
  if ((me.flags & kUnfit) != 0 ||
      (me.end_flags & (EndFlag::belongings | EndFlag::after_exit)) != 0 || me.seeds != nullptr ||
      !worker.lock.lock_at_once()) [[unlikely]] {
    return;
  }
  // Acquire, and who is woken where: as in end_here().
  const std::uintptr_t bits = me.joiner.load(std::memory_order_acquire);
  if ((bits & Waiter::kSuspendedTag) != 0) [[likely]] {
    Thread& joiner = *Waiter::from_bits(bits).suspended_thread();
    if (joiner.worker.load(std::memory_order_relaxed) == &worker &&
        (joiner.flags & (kUnfit | kSavedFlags)) == 0 && !worker.queue.has_levels() &&
        joiner.hold.load(std::memory_order_relaxed) == Hold::none && !has_state(worker))
        [[likely]] {
      STERNA_PROBE1(thread_exit, &me);
      STERNA_PROBE1(thread_wake, &joiner);
      joiner.activity.store(Activity::ready, std::memory_order_relaxed);
      count_end(worker.team, &worker);
      me.activity.store(Activity::none, std::memory_order_relaxed);
      worker.current.store(&joiner, std::memory_order_relaxed);
      STERNA_PROBE2(thread_switch, &me, &joiner);
      leave_context_for(me.context, joiner.context, &worker, starter);
    }
  }
  worker.lock.unlock();
}
#endif

}  // namespace

void end_current(Thread& me) noexcept {
  end_inside(me);
  end_here(me);
}

}  // namespace sterna::threads

/// The bottom function of every thread: its context is its first field.
void sterna_context_main(void* context, [[maybe_unused]] void* starter) noexcept {
  using namespace sterna::threads;
  Thread& me = *static_cast<Thread*>(context);
  if constexpr (kSanitized) {
    sanitizer_entered(me);
  }
  Worker* worker = me.worker.load(std::memory_order_relaxed);
  finish_switch(*worker);
  if ((me.flags & ThreadFlag::user_code) != 0) [[likely]] {
    leave_runtime(me, *worker);
    me.entry(me.argument);
    worker = &enter_from_user(me);
  } else {
    me.entry(me.argument);
    worker = me.worker.load(std::memory_order_relaxed);
  }
#if defined(__x86_64__)
  if constexpr (!kSanitized) {
    end_to_joiner(*worker, me, starter);
    end_inside(me);
    jump_for_good(sterna_context_end, &me);
  }
#endif
  end_inside(me);
  end_here(me);
}

void sterna_context_end(void* context) noexcept {
  sterna::threads::end_here(*static_cast<sterna::threads::Thread*>(context));
}

void sterna_context_ended() noexcept {
  sterna::fail("an ended thread does not run again", __FILE__, __LINE__);
}
