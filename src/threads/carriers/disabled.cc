// Workers whose processors are taken away while they run, and come back.
//
// A disabled worker is still one: its kernel thread, inbox, timers and locks serve as before, so no
// protocol changes and nothing is lost on its way there. But it takes nothing from others, keeps
// nothing that another one may run, and stands by instead of searching: it counts neither as a
// searcher, who would be the reason to wake nobody, nor as a sleeper, whom wakers would wake in
// vain. Its kernel thread moves to the processors of the others, which it shares when something
// that is bound to it runs.
//
// The sleep is that of sleep.cc: disable() and enable() store is_disabled and then read sleep_word
// in wake(); the worker stores sleep_word and then looks at is_disabled.
#include <string>

#include <sys/syscall.h>

#include "base/check.h"
#include "base/cpu.h"
#include "base/syscall.h"
#include "threads/queues/kept.h"
#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

/// The processors of the workers that `is_wanted`.
template <typename Wanted>
ProcessorMask mask_of(const TeamState& team, Wanted&& is_wanted) noexcept {
  ProcessorMask mask = {};
  for (const auto& one : team.workers) {
    const std::uint32_t processor = team.processors[one->index];
    if (processor < mask.size() * 64 && is_wanted(*one)) {
      mask[processor / 64] |= std::uint64_t{1} << (processor % 64);
    }
  }
  return mask;
}

void set_processors(int kernel_id, const ProcessorMask& mask) noexcept {
  raw_system_call(SYS_sched_setaffinity, kernel_id, sizeof mask,
                  reinterpret_cast<long>(mask.data()));
}

bool is_enabled(const Worker& worker) noexcept {
  return !worker.is_disabled.load(std::memory_order_relaxed);
}

}  // namespace

bool Worker::hand_over() noexcept {
  const bool is_mine = current_worker() == this;
  if (is_mine) {
    lock.lock();
  } else {
    while (!lock.try_lock_from_outside()) {
      cpu_pause();
    }
  }
  inbox.drain_to(queue);
  const std::uint32_t present = queue.count();
  Thread* leaving = nullptr;
  Thread** leaving_end = &leaving;
  Thread* bound = nullptr;
  Thread** bound_end = &bound;
  for (std::uint32_t i = 0; i < present; ++i) {
    Thread* const thread = queue.pop_front();
    if (thread == nullptr) {
      break;  // The others were held, or recalled.
    }
    const bool stays =
        (thread->flags & ThreadFlag::kept) == 0 && enabled_worker_for(team, *thread) == nullptr;
    Thread**& end = stays ? bound_end : leaving_end;
    thread->next = nullptr;
    *end = thread;
    end = &thread->next;
  }
  const bool has_bound = bound != nullptr;
  while (bound != nullptr) {
    Thread* const next = bound->next;
    queue.push_back(*bound);
    bound = next;
  }
  if (is_mine) {
    lock.unlock();
  } else {
    lock.unlock_from_outside();
  }
  while (leaving != nullptr) {
    Thread* const next = leaving->next;
    if ((leaving->flags & ThreadFlag::kept) != 0) {
      expose(*leaving);
    } else {
      Worker* const home = enabled_worker_for(team, *leaving);
      Worker& to = home != nullptr ? *home : *this;  // Another one may be disabled by now.
      // Relaxed: its next home; wakers learn of it by way of its next parking.
      leaving->worker.store(&to, std::memory_order_relaxed);
      send_home(to, *leaving);
    }
    leaving = next;
  }
  return has_bound;
}

/// In place of the search of others: until something bound is ready, or the processor is back.
void Worker::stand_by() noexcept {
  while (is_disabled.load(std::memory_order_seq_cst) && !team.is_over()) {
    const bool has_seeds = !seeds.is_empty();
    if (has_seeds) {
      (void)take_seed();
    }
    if (timers.next_ns() != kNever) {
      timers.fire(team.now_ns());
    }
    if (hand_over()) {
      return;
    }
    if (has_seeds) {
      continue;  // Perhaps there are more.
    }
    sleep_word.store(SleepState::kStandsBy, std::memory_order_seq_cst);  // (1) of sleep.cc
    lock.lock();
    const bool has_thread = !inbox.empty() || !queue.empty();  // (2)
    lock.unlock();
    if (!has_thread && is_disabled.load(std::memory_order_seq_cst) &&
        !team.is_stopped.load(std::memory_order_seq_cst)) {
      futex_wait(sleep_word, SleepState::kStandsBy, timers.next_ns());
    }
    sleep_word.exchange(SleepState::kAwake, std::memory_order_seq_cst);
  }
}

void bind_carrier(const Worker& worker, Carrier& carrier) noexcept {
  const TeamState& team = worker.team;
  const int kernel_id = carrier.kernel_id.load(std::memory_order_relaxed);
  if (team.processors.empty() || kernel_id == 0) {
    return;  // It is bound when it begins.
  }
  const bool is_disabled = !is_enabled(worker);
  set_processors(kernel_id, mask_of(team, [&](const Worker& one) {
                   return is_disabled ? is_enabled(one) : &one == &worker;
                 }));
  carrier.processor.store(is_disabled ? kAnyWorker : team.processors[worker.index],
                          std::memory_order_relaxed);
}

std::optional<ProcessorMask> first_processors(const Worker& worker) noexcept {
  if (worker.team.processors.empty()) {
    return std::nullopt;
  }
  return mask_of(worker.team, [&](const Worker& one) { return &one == &worker; });
}

void use_processors_of(const TeamState& team) noexcept {
  set_processors(0, team.processors.empty() ? team.opener_processors : mask_of(team, is_enabled));
}

Result<> Team::disable(std::uint32_t worker) noexcept {
  check(worker < worker_count(), "disable() is called for a worker of the team");
  Worker& its = *state_->workers[worker];
  {
    const SpinGuard guard{state_->disable_lock};
    if (its.is_disabled.load(std::memory_order_relaxed)) {
      return Done{};
    }
    if (state_->disabled_count + 1 == worker_count()) {
      return Error{Errc::refused, "threads: worker " + std::to_string(worker) +
                                      " is the last one that is enabled; a team keeps one"};
    }
    ++state_->disabled_count;
    its.is_disabled.store(true, std::memory_order_seq_cst);
    if (Carrier* const carrier = its.carrier.load(std::memory_order_acquire); carrier != nullptr) {
      bind_carrier(its, *carrier);
    }
  }
  its.countdown.store(1, std::memory_order_relaxed);  // It looks at its next switch.
  (void)its.wake();
  (void)its.hand_over();  // Its thread may compute for long.
  return Done{};
}

void Team::enable(std::uint32_t worker) noexcept {
  check(worker < worker_count(), "enable() is called for a worker of the team");
  Worker& its = *state_->workers[worker];
  const SpinGuard guard{state_->disable_lock};
  if (!its.is_disabled.exchange(false, std::memory_order_seq_cst)) {
    return;
  }
  --state_->disabled_count;
  if (Carrier* const carrier = its.carrier.load(std::memory_order_acquire); carrier != nullptr) {
    bind_carrier(its, *carrier);
  }
  (void)its.wake();
}

bool Team::is_enabled(std::uint32_t worker) const noexcept {
  check(worker < worker_count(), "is_enabled() is asked of a worker of the team");
  return !state_->workers[worker]->is_disabled.load(std::memory_order_relaxed);
}

}  // namespace sterna::threads
