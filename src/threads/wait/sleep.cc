// What a worker does when it has nothing to run: looks elsewhere, polls, spins a little, sleeps.
//
// Nothing is lost between "nothing to do" and "asleep". The sleeper stores sleep_word (1) and then
// looks into its inbox (2); a waker pushes into the inbox (3) and then reads sleep_word (4). All
// four are sequentially consistent, so in their one order either 3 comes before 2, and the sleeper
// sees the thread and stays, or 1 comes before 4, and the waker sees a sleeper. It takes sleep_word
// back to 0 and wakes: neither futex nor hook falls asleep on a changed word, and the hook keeps a
// wake() that comes later. The look (2) holds the biased lock and includes the queue: a thief
// drains the inbox into it, leaves there what is bound, or more than its half, and wakes nobody.
// tests: sleep_model_test.cc. Dispatch gives the same promise for its queues:
// has_work() at 2 against a push at 3, then wake_idle() at 4.
// Work in the private queue of another worker is a hint only: that worker runs it itself sooner
// or later, and one sleeper of the team, the watcher, gets up now and then (1 ms, then longer while
// nothing happens) to take what waits behind a thread that computes for long.
#include <algorithm>

#include <sys/syscall.h>

#include "base/cpu.h"
#include "base/syscall.h"
#include "threads/observation/traced.h"
#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

using SleepState::kAwake, SleepState::kInHook, SleepState::kOnFutex, SleepState::kStandsBy;
constexpr std::uint64_t kWatchNsMin = 1'000'000;
constexpr std::uint64_t kWatchNsMax = 16'000'000;
constexpr std::uint32_t kStealMax = 64;  // Bounds the time in a foreign lock.
constexpr std::uint64_t kLoneStealNs = 2'000;
// For a microsecond a search is not counted: an answer of another worker, which comes by then,
// would cost both of them a line more.
constexpr std::uint64_t kUncountedNs = 1'200;
constexpr std::uint64_t kEarlyShare = 8;  // Of spin_cycles: so long it polls before early sleeps.
constexpr int kLooks = 24;  // As long as a pause, but an answer is seen at once.
constexpr std::uint64_t kPauseNsMin = 20'000;
constexpr std::uint64_t kPauseNsMax = 2'000'000;

}  // namespace

/// One period without work, from its begin to the next thread.
struct Worker::Search {
  std::uint64_t begin_cycles = 0;  // Of the present spinning.
  std::uint64_t watch_ns = kWatchNsMin;
  std::uint32_t victim_countdown = 0;  // To see whether a victim switches.
  std::uint64_t victim_since = 0;
  Worker* victim = nullptr;
  // After a look into the queues of others that was for nothing: not before that, the next pause.
  std::uint64_t steal_after = 0;
  std::uint64_t steal_pause_ns = kPauseNsMin;
  std::uint64_t kept_after = 0;
  std::uint64_t kept_pause_ns = kPauseNsMin;
  bool was_asleep_for_all = false;
  bool has_yielded = false;  // Since the last sleep.
  bool is_counted = false;  // In TeamState::searcher_count.
};

bool Worker::wake() noexcept {
  if (sleep_word.load(std::memory_order_seq_cst) == kAwake) {  // (4)
    return false;
  }
  const std::uint32_t state = sleep_word.exchange(kAwake, std::memory_order_seq_cst);
  if (state == kAwake) {
    return false;
  }
  if (state != kStandsBy) {
    team.sleeper_count.fetch_sub(1, std::memory_order_seq_cst);  // (3) of ticker.cc
    // The sleeper may have got up by itself, found work and kicked the tickers, which saw it
    // asleep: then this is the kick that counts. Before the wake-up, after which the team may end.
    team.kick_tickers();
  }
  if (state == kInHook) {
    team.options.idle_hook->wake();
  } else {
    futex_wake(&sleep_word, 1);
  }
  return true;
}

void TeamState::wake_idle(std::uint32_t first, std::uint32_t count) noexcept {
  // A searcher, perhaps not of the range, looks once more before it sleeps. Order: as 4.
  if (count >= workers.size() && searcher_count.load(std::memory_order_seq_cst) != 0) {
    return;
  }
  const auto end =
      static_cast<std::uint32_t>(std::min<std::size_t>(workers.size(), std::size_t{first} + count));
  for (std::uint32_t i = first; i < end; ++i) {
    // Relaxed: who is disabled meanwhile hands over what it finds.
    if (!workers[i]->is_disabled.load(std::memory_order_relaxed) && workers[i]->wake()) {
      return;
    }
  }
}

std::uint64_t TeamState::next_timer_ns() const noexcept {
  std::uint64_t next = kNever;
  for (const auto& worker : workers) {
    next = std::min(next, worker->timers.next_ns());
  }
  return next;
}

bool TeamState::fire_timers() noexcept {
  if (next_timer_ns() == kNever) {
    return false;
  }
  bool has_fired = false;
  const std::uint64_t now = now_ns();
  for (const auto& worker : workers) {
    if (worker->timers.next_ns() <= now) {
      worker->timers.fire(now);
      has_fired = true;
    }
  }
  return has_fired;
}

std::uint32_t Worker::steal_from(Worker& victim) noexcept {
  if (!victim.lock.try_lock_from_outside()) {
    return 0;
  }
  victim.inbox.drain_to(victim.queue);
  const std::uint32_t present = victim.queue.count();
  const std::uint32_t wanted = std::min((present + 1) / 2, kStealMax);
  std::array<Thread*, kStealMax> taken;
  std::uint32_t taken_count = 0;
  // What is bound returns at the end only: the most urgent one would be found again and again.
  Thread* bound = nullptr;  // Or given to that worker by Dispatch: closed.cc.
  Thread** bound_end = &bound;
  for (std::uint32_t i = 0; i < present && taken_count < wanted; ++i) {
    Thread* const thread = victim.queue.pop_front();
    if (thread == nullptr) {
      break;  // The others were held.
    }
    if ((thread->flags & ThreadFlag::managed) != 0 || !may_run_on(*thread, index)) {
      thread->next = nullptr;
      *bound_end = thread;
      bound_end = &thread->next;
    } else {
      taken[taken_count++] = thread;
    }
  }
  while (bound != nullptr) {
    Thread* const next = bound->next;
    victim.queue.push_back(*bound);
    bound = next;
  }
  victim.lock.unlock_from_outside();
  for (std::uint32_t i = 0; i < taken_count; ++i) {
    if ((taken[i]->flags & ThreadFlag::traced) != 0) [[unlikely]] {
      trace_queue(trace::Kind::stolen, *taken[i], victim.index);
    }
  }
  lock.lock();
  for (std::uint32_t i = 0; i < taken_count; ++i) {
    // Relaxed: its next home; wakers learn of it by way of its next parking.
    taken[i]->worker.store(this, std::memory_order_relaxed);
    queue.push_back(*taken[i]);
  }
  lock.unlock();
  return taken_count;
}

bool Worker::try_steal(Search& search, bool is_last_look) noexcept {
  if (!team.options.steal) {
    return false;
  }
  const std::size_t count = team.workers.size();
  for (std::size_t i = 1; i < count; ++i) {
    Worker& victim = *team.workers[(index + i) % count];
    const std::uint32_t waiting = victim.queue.count() + (victim.inbox.looks_empty() ? 0 : 1);
    if (waiting == 0) {
      continue;
    }
    if (waiting == 1 || cycles() < victim.left_alone_until.load(std::memory_order_relaxed)) {
      // A lone thread is about to run there, unless the worker does not switch for a while.
      const std::uint32_t now_countdown = victim.countdown.load(std::memory_order_relaxed);
      if (search.victim != &victim || search.victim_countdown != now_countdown) {
        search.victim = &victim;
        search.victim_countdown = now_countdown;
        search.victim_since = cycles();
      }
      if (!is_last_look && cycles() - search.victim_since < team.to_cycles(kLoneStealNs)) {
        continue;
      }
    }
    if (!is_last_look && cycles() < search.steal_after) {
      return false;
    }
    if (steal_from(victim) != 0) {
      return true;
    }
    // All of it is bound or kept: the victim pays for each look.
    search.steal_after = cycles() + team.to_cycles(search.steal_pause_ns);
    search.steal_pause_ns = std::min(2 * search.steal_pause_ns, kPauseNsMax);
  }
  return false;
}

bool Worker::try_kept(Search& search, bool is_last_look) noexcept {
  Dispatch* const dispatch = team.options.dispatch;
  const std::uint64_t now = cycles();
  if (dispatch == nullptr || now < search.kept_after) {
    return false;
  }
  // As in try_steal(): a lone thread is about to run there.
  const bool takes_lone = is_last_look || now - search.begin_cycles > team.to_cycles(kLoneStealNs);
  bool has_looked = false;
  for (const auto& victim : team.workers) {
    const std::uint32_t waiting = victim->queue.count() + (victim->inbox.looks_empty() ? 0 : 1);
    if (victim.get() != this && victim->kept_count.load(std::memory_order_relaxed) != 0 &&
        waiting > (takes_lone ? 0 : 1)) {
      has_looked = true;
      (void)expose_kept(*victim);
    }
  }
  if (!has_looked) {
    return false;
  }
  lock.lock();
  Thread* const thread = dispatch->next(*this, nullptr);
  if (thread != nullptr) {
    queue.push_back(*thread);
  }
  lock.unlock();
  for (const auto& victim : team.workers) {
    dispatch->settle(*victim);
  }
  if (thread == nullptr) {  // Its policy gives us nothing.
    search.kept_after = now + team.to_cycles(search.kept_pause_ns);
    search.kept_pause_ns = std::min(2 * search.kept_pause_ns, kPauseNsMax);
  }
  return thread != nullptr;
}

bool Worker::find_work(Search& search) noexcept {
  if (team.is_closed.load(std::memory_order_relaxed)) [[unlikely]] {
    return find_passing();
  }
  if (!inbox.looks_empty()) {
    return true;
  }
  if (Dispatch* const dispatch = team.options.dispatch; dispatch != nullptr) {
    lock.lock();
    Thread* const thread = dispatch->next(*this, nullptr);
    if (thread != nullptr) {
      queue.push_back(*thread);
    }
    lock.unlock();
    if (thread != nullptr) {
      return true;
    }
  }
  (void)team.fire_timers();
  if (IdleHook* const hook = team.options.idle_hook;
      hook != nullptr && hook->poll(SchedulingPoint::idle) != 0) {
    search.begin_cycles = cycles();  // Where something comes, more may come.
  }
  return queue.count() != 0 || !inbox.looks_empty() || try_kept(search, false) ||
         try_steal(search, false) || take_seed();
}

bool Worker::has_reason_to_stay(Search& search) noexcept {
  // (2): sequentially consistent, see above.
  lock.lock();
  const bool has_thread = !inbox.empty() || !queue.empty();
  lock.unlock();
  if (has_thread || team.is_stopped.load(std::memory_order_seq_cst) ||
      is_disabled.load(std::memory_order_seq_cst)) {
    return true;
  }
  Dispatch* const dispatch = team.options.dispatch;
  if (team.is_closed.load(std::memory_order_seq_cst)) [[unlikely]] {
    // unhold_all() opens the queues, then this, then it wakes us.
    return dispatch != nullptr && may_passing_wait() && dispatch->has_work(*this);
  }
  // Our own seeds stay when there is no memory for threads. Those of others are a hint only: they
  // wait for their own worker, who sleeps no more than we do. The watcher looks now and then.
  if (!seeds.is_empty()) {
    return true;
  }
  return (dispatch != nullptr && dispatch->has_work(*this)) ||
         (search.was_asleep_for_all &&
          (try_kept(search, true) || try_steal(search, true) || find_seed() != nullptr)) ||
         (dispatch != nullptr && dispatch->use_idleness());
}

void Worker::sleep(Search& search) noexcept {
  IdleHook* const hook = team.options.idle_hook;
  const bool is_watcher = !team.has_watcher.exchange(true, std::memory_order_acq_rel);
  const std::uint32_t state = is_watcher && hook != nullptr ? kInHook : kOnFutex;
  team.end_search();
  team.sleeper_count.fetch_add(1, std::memory_order_relaxed);
  sleep_word.store(state, std::memory_order_seq_cst);  // (1)
  if (!has_reason_to_stay(search)) {
    trace_event(trace::Kind::sleeps, trace::kNobody);
    std::uint64_t deadline_ns = timers.next_ns();
    if (is_watcher) {
      deadline_ns = team.next_timer_ns();
      if (team.workers.size() > 1) {
        deadline_ns = std::min(deadline_ns, team.now_ns() + search.watch_ns);
      }
      search.watch_ns = std::min(2 * search.watch_ns, kWatchNsMax);
    }
    if (state == kOnFutex) {
      futex_wait(sleep_word, state, deadline_ns);
    } else {
      sleep_for_network(deadline_ns, search.watch_ns);
    }
    trace_event(trace::Kind::awakes, trace::kNobody);
  }
  search.was_asleep_for_all = is_watcher;
  if (sleep_word.exchange(kAwake, std::memory_order_seq_cst) != kAwake) {
    team.sleeper_count.fetch_sub(1, std::memory_order_relaxed);  // Nobody woke us.
  } else {
    search.begin_cycles = cycles();  // Somebody did, for work: look around for a while.
  }
  team.begin_search();
  search.is_counted = true;
  if (is_watcher) {
    team.has_watcher.store(false, std::memory_order_release);
  }
}

void Worker::rest(Search& search) noexcept {
  const std::uint64_t now = cycles();
  if (!search.is_counted) {
    if (now - search.begin_cycles < std::min(team.to_cycles(kUncountedNs), team.spin_cycles)) {
      for (int looks = 0; looks < kLooks && inbox.looks_empty(); ++looks) {
      }
      return;
    }
    team.begin_search();
    search.is_counted = true;
  }
  const std::uint64_t spun = now - search.begin_cycles;
  // Somebody expects an answer: one of us stays up for it, the others may sleep.
  const bool is_last = team.searcher_count.load(std::memory_order_relaxed) == 1;
  const bool is_on_duty = is_last && now < team.stay_awake_until.load(std::memory_order_relaxed);
  const bool is_shared = early_sleeps != 0;
  if (is_on_duty || spun < (is_shared ? team.spin_cycles / kEarlyShare : team.spin_cycles)) {
    cpu_pause();
    return;
  }
  // Nor is it worth while as long as a sleep costs more, as for kernel threads that wait
  // (progress/await.cc). Before a sleep it yields once at least: so it finds out whether who is
  // served shares its processor, and takes what that sends then without a sleep.
  if (IdleHook* const hook = team.options.idle_hook;
      is_last && hook != nullptr && team.spin_cycles != 0 && early_sleeps <= kEarlySleeps &&
      (!search.has_yielded || (!is_shared && spun < team.to_cycles(hook->sleep_price_ns())))) {
    search.has_yielded = true;
    yield_before_sleep(*hook);
    return;
  }
  early_sleeps -= is_shared ? 1 : 0;
  search.has_yielded = false;
  sleep(search);
}

void Worker::look_for_work() noexcept {
  if (is_disabled.load(std::memory_order_relaxed)) [[unlikely]] {
    stand_by();
    return;
  }
  Search search;
  search.begin_cycles = cycles();
  while (!is_disabled.load(std::memory_order_relaxed) && !find_work(search) && !team.is_over()) {
    rest(search);
  }
  if (search.is_counted) {
    team.end_search();  // (3) of ticker.cc
    team.kick_tickers();
  }
  if (search.was_asleep_for_all && team.options.idle_hook != nullptr) {
    team.options.idle_hook->note_work();
  }
  // Who slept for all has work now: one of the others takes over the network and the watch.
  // Who found one of several threads in the shared queues was, as a searcher, a reason to wake
  // nobody else. The same for seeds: where one was stolen there may be more. And for a broadcast:
  // whoever woke us woke only us for all that are at home here, and who steals takes half; so each
  // that finds several wakes another one, who does the same.
  const auto has_several = [this]() noexcept {
    lock.lock();
    inbox.drain_to(queue);
    const std::uint32_t present = queue.count();
    lock.unlock();
    return present > 1 && cycles() >= left_alone_until.load(std::memory_order_relaxed);
  };
  const Dispatch* const dispatch = team.options.dispatch;
  if (team.sleeper_count.load(std::memory_order_relaxed) != 0 &&
      (search.was_asleep_for_all || (dispatch != nullptr && dispatch->has_work(*this)) ||
       find_seed() != nullptr || has_several())) {
    team.wake_idle(0, static_cast<std::uint32_t>(team.workers.size()));
  }
}

}  // namespace sterna::threads
