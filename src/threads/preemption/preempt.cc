// Who is preempted, and whose worker is taken over: what the ticker does. preempt_signal.cc has
// what happens on the kernel thread that is preempted.
#include "threads/preemption/preempt.h"

#include <algorithm>

#include "threads/preemption/crowd.h"
#include "threads/preemption/preempt_signal.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

// A carrier that computed less between two looks, and sleeps at both, is blocked.
constexpr std::uint64_t kAwakeNs = 100'000;
// Spares that are not made after so many ticks wait for a lock.
constexpr std::uint32_t kStuckTicks = 4;

/// The highest priority that waits on `worker`; -1: nobody does.
int waiting_level(Worker& worker) noexcept {
  if (worker.team.is_closed.load(std::memory_order_relaxed)) {
    // All but one thread are to leave: hold_all().
    return worker.current.load(std::memory_order_relaxed) ==
                   worker.team.passing.load(std::memory_order_relaxed)
               ? -1
               : kPriorityCount;
  }
  const Dispatch* const dispatch = worker.team.options.dispatch;
  int level = dispatch != nullptr ? dispatch->highest(worker) : -1;
  const bool has_ready = worker.queue.count() != 0;
  if (worker.inbox.looks_empty() && !worker.queue.seems_to_have_levels()) {
    // The usual crowd. The lock would stop the worker by an interrupt (its process_barrier()), for
    // a hint: as much as tens of its switches, at each tick.
    return std::max(level, has_ready ? int{kPriorityNormal} : -1);
  }
  if (worker.lock.try_lock_from_outside(kTickPauses)) {
    worker.inbox.drain_to(worker.queue);
    level = std::max(level, worker.queue.highest());
    worker.lock.unlock_from_outside();
  }
  return level;
}

}  // namespace

Preemptor::Preemptor(TeamState& team) noexcept
    : team_{team}, looks_(team.workers.size()), asked_{new std::atomic<bool>[looks_.size()] {}} {}

bool Preemptor::wants_ticks() noexcept {
  // Somebody computes. More at a time than there are, while one changes sides: not for long.
  return team_.searcher_count.load(std::memory_order_seq_cst) +
             team_.sleeper_count.load(std::memory_order_seq_cst) <
         team_.workers.size();
}

std::uint32_t Preemptor::tick(std::uint64_t now_ns) noexcept {
  ask_for_spares(team_);
  making_ticks_ = team_.is_making.load(std::memory_order_relaxed) != 0 ? making_ticks_ + 1 : 0;
  is_urgent_ = making_ticks_ != 0;
  for (std::size_t i = 0; i < looks_.size(); ++i) {
    team_.workers[i]->meter.look();
    look_at(*team_.workers[i], looks_[i], now_ns);
  }
  if (team_.options.take_over) {
    call_back_strays();
  }
  is_urgent_ = team_.lead_polls() || is_urgent_;
  intervals_ = team_.intervals_to_tick(now_ns);
  return is_urgent_ ? 1 : intervals_;
}

void Preemptor::look_at(Worker& worker, Look& look, std::uint64_t now_ns) noexcept {
  Carrier* const carrier = worker.carrier.load(std::memory_order_acquire);
  const Thread* const thread = worker.current.load(std::memory_order_relaxed);
  if (carrier == nullptr || worker.busy_begin.load(std::memory_order_relaxed) == 0) {
    look = {};
    return;
  }
  const std::uint32_t countdown = worker.countdown.load(std::memory_order_relaxed);
  if (thread != look.thread || carrier != look.carrier || countdown != look.countdown) {
    look = {thread, carrier, countdown, now_ns, processor_time(*carrier), false};
  }
  const int level = waiting_level(worker);
  if (level < 0) {
    worker.border.wish.store(Wish::none, std::memory_order_relaxed);
    // Its seeds are no reason to preempt who has planted them, and will run them itself. But who
    // sleeps may sleep for what one of them does.
    if (worker.seeds.count() > 0 && !team_.is_closed.load(std::memory_order_relaxed)) {
      is_urgent_ = take_over_if_asleep(worker, *carrier, look) || is_urgent_;
    }
    return;
  }
  // Threads know their own modes: this one may have ended, and its slot be gone.
  const bool has_own_modes = team_.has_own_preemption.load(std::memory_order_relaxed);
  const PreemptMode mode = team_.options.preempt;
  const bool is_any = mode != PreemptMode::none || has_own_modes;
  const bool is_asked = asked_[worker.index].exchange(false, std::memory_order_relaxed);
  const bool is_over = (mode == PreemptMode::slice || has_own_modes) &&
                       now_ns - look.since_ns >= team_.options.slice_ns * intervals_;
  if (is_any) {
    worker.border.wish.store(static_cast<std::uint8_t>((level + 1) | (is_asked ? Wish::asked : 0) |
                                                       (is_over ? Wish::slice_over : 0)),
                             std::memory_order_relaxed);
  }
  if (take_over_if_asleep(worker, *carrier, look)) {
    is_urgent_ = true;
    return;
  }
  if (!is_any || (!is_over && !is_asked && level < kPriorityRealTime)) {
    return;
  }
  is_urgent_ = is_urgent_ || is_asked || level >= kPriorityRealTime;
  if (worker.reserve.load(std::memory_order_relaxed) == nullptr) {
    // Sequentially consistent, as in Team::stop(): either that finds it, or we find a stop.
    worker.reserve.store(take_spare(team_), std::memory_order_seq_cst);
    if (team_.is_stopped.load(std::memory_order_seq_cst)) {
      worker.drop_reserve();
    }
  }
  if (worker.reserve.load(std::memory_order_relaxed) != nullptr) {
    send_preempt_signal(*carrier);
  } else if (making_ticks_ > kStuckTicks) {
    worker.send_on_errands();  // Perhaps one of those has the lock.
  }
}

/// True: it sleeps in the kernel, and must not be disturbed by a signal.
bool Preemptor::take_over_if_asleep(Worker& worker, Carrier& carrier, Look& look) noexcept {
  const std::uint64_t time = processor_time(carrier);
  const bool has_computed = time - look.processor_ns > kAwakeNs;
  look.processor_ns = time;
  if (!is_asleep(carrier)) {
    look.was_asleep = false;
    return false;
  }
  const bool is_blocked = look.was_asleep && !has_computed;
  look.was_asleep = true;
  if (!is_blocked || !team_.options.take_over) {
    return true;
  }
  if (try_take_over(worker)) {
    look = {};
  } else {
    worker.send_on_errands();  // It is in the runtime, or nobody is to be had: see there.
  }
  return true;
}

/// A thread whose blocking call has returned goes on without a worker, beside those that have one:
/// one that computes is told to queue.
void Preemptor::call_back_strays() noexcept {
  std::size_t count = 0;
  {
    const SpinGuard guard{team_.carriers_lock};
    count = team_.carriers.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    // They stay where they are: the vector has the room for all from the start.
    Carrier& carrier = *team_.carriers[i];
    if (carrier.taken.load(std::memory_order_relaxed) != nullptr && !is_asleep(carrier)) {
      send_preempt_signal(carrier);
      is_urgent_ = true;
    }
  }
}

}  // namespace sterna::threads
