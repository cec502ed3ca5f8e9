// See unstarted.h. The counts of who is born and who has ended: one that is not started is counted
// in both, so it is none of those that live; its start counts it once more.
#include "threads/life/unstarted.h"

#include "threads/carriers/locals.h"
#include "threads/flags.h"
#include "threads/life/life.h"
#include "threads/observation/traced.h"
#include "threads/waiter.h"

namespace sterna::threads {

Result<Thread*> make_unstarted(Team& its_team, const ThreadOptions& options, bool has_own_locals,
                               Entry entry, void* argument) noexcept {
  TeamState& team = *its_team.state();
  Locals* locals = nullptr;
  if (has_own_locals) {
    Result<Locals*> made = make_locals();
    if (!made) {
      return made.error();
    }
    locals = made.value();
  }
  Worker* const here = worker_here(team);
  Result<Thread*> made = make_thread(team, here, options);
  if (made && options.guard_bytes != 0) {
    if (Result<> guarded = memory::add_stack_guard(made.value()->stack_base, options.guard_bytes);
        !guarded) {
      keep_slot(team, here, *made.value());
      made = guarded.error();
    }
  }
  if (!made) {
    if (locals != nullptr) {
      end_locals(*locals);
    }
    return made;
  }
  Thread& thread = *made.value();
  init_thread(team, here, thread, options, entry, argument);
  if (locals != nullptr) {
    give_locals(thread, *locals);
  }
  leave_unstarted(thread);
  return &thread;
}

void leave_unstarted(Thread& thread) noexcept {
  TeamState& team = *thread.team->state();
  count_end(team, worker_here(team));
}

void start_unstarted(Thread& thread, std::uint32_t worker) noexcept {
  TeamState& team = *thread.team->state();
  Worker* const here = worker_here(team);
  (void)count_birth(team, here);  // It has its number.
  start_thread(team, here, thread, worker);
}

void end_unstarted(Thread& thread) noexcept {
  if ((thread.flags & ThreadFlag::own_locals) != 0) {
    set_flags(thread, thread.flags & ~ThreadFlag::own_locals);
    end_locals(*thread.locals);  // Switches: the worker is asked for below.
  }
  if ((thread.flags & ThreadFlag::traced) != 0) {
    trace_ended(thread);
  }
  thread.end_flags |= EndFlag::cancelled;
  // From here on as at the end of one that has run: life.cc.
  const std::uintptr_t joiner =
      (thread.flags & ThreadFlag::detached) != 0
          ? Joined::detached
          : thread.joiner.exchange(Joined::ended, std::memory_order_acq_rel);
  if (joiner == Joined::detached) {
    reap(worker_here(*thread.team->state()), thread);
  } else if (joiner != 0) {
    Waiter::from_bits(joiner).signal();
  }
}

}  // namespace sterna::threads
