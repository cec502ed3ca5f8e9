// How kernel threads wait for a signal: they poll for a while, wake who might answer, let others
// have the processor, and sleep, one for the network and the others beside it.
#include <algorithm>

#include <sys/syscall.h>

#include "base/cpu.h"
#include "progress/completion.h"
#include "progress/impl.h"
#include "progress/progress.h"
#include "threads/wait/futex.h"
#include "threads/waiter.h"

namespace sterna::progress {
namespace {

constexpr std::uint32_t kSpinTurns = 32;
constexpr std::uint32_t kRoundsOfTurn = 8;
constexpr std::uint32_t kSlowSpinTurns = 60;  // Shorter ones, with a yield between two.
constexpr std::uint32_t kSlowRoundsOfTurn = 4;
// Who waits longer than that lets others have the processor between two looks, if there are any:
// on a processor of one's own that takes a quarter of a microsecond.
constexpr std::uint64_t kAloneNs = 4'000;
// So often also while something comes all the time, or is left to do, so that nobody may sleep: who
// does it may need this processor, and under a real-time policy nobody takes it from us.
constexpr std::uint64_t kTurnNs = 100'000;
// What is under way for longer is slept for: to be a twentieth late is no matter then.
constexpr std::uint64_t kExpectedNsMax = 1'000'000;
// So long eight or nine looks last, or sixteen, only where one is calls of the system.
constexpr std::uint64_t kSlowLooksNs = 1'200;

}  // namespace

void Progress::sleep_beside(threads::KernelWaiter& waiter, std::uint64_t deadline_ns) noexcept {
  Impl& impl = *impl_;
  {
    const SpinGuard guard{impl.aside_lock};
    impl.aside.push_back(&waiter);
  }
  // The word says "asleep" before we look for the sleeper, who takes his leave before he looks at
  // our word: either we see that he has gone, or he ends our sleep.
  if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kOnFutex)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (impl.has_sleeper.load(std::memory_order_seq_cst)) {
      const OneCaller::Away away{impl.caller};
      threads::futex_wait(waiter.word, threads::KernelWaiter::kOnFutex, deadline_ns);
    }
  }
  threads::leave_sleep(waiter);
  {
    const SpinGuard guard{impl.aside_lock};
    std::erase(impl.aside, &waiter);
  }
}

/// Until it is signalled (true), or its pause is over.
bool Progress::Impl::sleep_in_retreat(threads::KernelWaiter& waiter, std::uint64_t deadline_ns,
                                      Retreat::Wait& wait) noexcept {
  using enum Retreat::Meanwhile;
  const std::uint64_t polls_before = polls.load(std::memory_order_relaxed);
  const std::uint64_t events_before = events.load(std::memory_order_relaxed);
  if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kOnFutex)) {
    const OneCaller::Away away{caller};
    threads::futex_wait(waiter.word, threads::KernelWaiter::kOnFutex,
                        std::min(deadline_ns, now_ns() + wait.pause_ns()));
  }
  threads::leave_sleep(waiter);
  if (threads::try_take_signal(waiter)) {
    return true;  // Of who completes it, with or without a look, nothing is learnt.
  }
  const bool was_looked = polls.load(std::memory_order_relaxed) != polls_before ||
                          has_sleeper.load(std::memory_order_relaxed);
  const bool has_come = events.load(std::memory_order_relaxed) != events_before;
  wait.is_back(!was_looked ? nobody_looked : has_come ? somebody_looked : nothing_came);
  return false;
}

void Progress::call_worker() noexcept {
  if (const std::atomic<std::uint32_t>* const word = impl_->standby.call(); word != nullptr) {
    threads::futex_wake(word, 1);
  }
}

namespace {

/// Of one wait: counted among those that look, from begin() on, until end().
class Looking {
 public:
  explicit Looking(Standby& standby) noexcept : standby_{standby} {}
  ~Looking() { end(); }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

  void begin() noexcept {
    if (!is_counted_) {
      is_counted_ = true;
      standby_.begin_to_look();
    }
  }
  void end() noexcept {
    if (is_counted_) {
      is_counted_ = false;
      standby_.cease_to_look();
    }
  }

 private:
  Standby& standby_;
  bool is_counted_ = false;
};

}  // namespace

bool Progress::spin_until(const Completion& completion) noexcept {
  if (options_.is_oversubscribed) {
    return false;
  }
  // A few microseconds. With a pause messages come a fifth sooner: it leaves the core to its other
  // half, and spares the loads that would be in vain when what is waited for comes.
  // Where a look is calls of the system it lasts longer, and who sends in the place of a program
  // that computes, or another process, may need this processor meanwhile.
  bool is_slow = false;
  Looking looking{impl_->standby};
  bool yields = false;
  const auto turns_max = [&] { return yields ? kSlowSpinTurns : kSpinTurns; };
  for (std::uint32_t turn = 0; turn < turns_max() && !completion.done(); ++turn) {
    if (yields) {
      looking.begin();
      yield();
    }
    const bool has_company = impl_->has_company();
    if (!impl_->try_take()) {
      cpu_pause();
      continue;
    }
    std::uint64_t begin_ns = turn == 1 ? now_ns() : 0;  // Of the looks at all sources, too.
    // To take and give the turn each time costs as much as the look itself, and to ask all sources
    // several times as much: the answer is likely to come where the last event came from.
    std::uint32_t count = impl_->poll_all(threads::SchedulingPoint::idle);
    if (turn == 0 && !completion.done()) {
      begin_ns = now_ns();  // Who has his answer by now needs no clock: it takes as long as a look.
    }
    const std::uint32_t rounds = has_company ? 0 : is_slow ? kSlowRoundsOfTurn : kRoundsOfTurn;
    BusySources& busy = impl_->busy;
    for (std::uint32_t round = 0;
         busy.last() != nullptr && round < rounds && !completion.done(); ++round) {
      Source& source = *busy.of_round(round);
      if (const std::uint32_t more = source.poll(); more != 0) {
        add_relaxed(impl_->events, more);
        busy.had(source);
        count += more;
      } else {
        cpu_pause();
      }
    }
    impl_->give_back_after(count);
    is_slow = is_slow || (begin_ns != 0 && !has_company && !completion.done() &&
                          now_ns() - begin_ns > kSlowLooksNs);
    yields = is_slow || has_company;
  }
  return completion.done();
}

int Progress::descriptor() const noexcept {
  return impl_->epoll.get();
}

bool Progress::hear() noexcept {
  if (!impl_->try_take()) {
    return false;
  }
  // A ring that nobody has slept for, or that came too late for its sleeper, says nothing, and
  // would keep the descriptor readable. Who sleeps here takes it by itself.
  if (impl_->has_rung.load(std::memory_order_relaxed) &&
      !impl_->has_sleeper.exchange(true, std::memory_order_seq_cst)) {
    impl_->has_rung.store(false, std::memory_order_relaxed);
    std::uint64_t ignored = 0;
    raw_system_call(SYS_read, impl_->event.get(), reinterpret_cast<long>(&ignored), sizeof ignored);
    impl_->has_sleeper.store(false, std::memory_order_seq_cst);
    impl_->wake_aside();
  }
  bool tells_all = impl_->added.empty();
  for (Source* const source : impl_->sources) {
    tells_all = source->hear() && tells_all;
  }
  impl_->give_back();
  return tells_all;
}

bool Progress::Impl::wake_absent(bool is_long) noexcept {
  bool has_woken = false;
  for (Source* const source : sources) {
    has_woken = source->wake_absent(is_long) || has_woken;
  }
  return has_woken;
}

bool Progress::wake_absent(bool is_long) noexcept {
  if (!impl_->try_take()) {
    return false;
  }
  const bool has_woken = impl_->wake_absent(is_long);
  impl_->give_back();
  return has_woken;
}

namespace {

/// How long the wait of a kernel thread has polled since something last came, and how long it may:
/// in nanoseconds or, where others need the processor meanwhile, in yields.
class Patience {
 public:
  Patience(SpinBudget& budget, bool counts_yields) noexcept
      : budget_{budget}, counts_yields_{counts_yields}, limit_{budget.begin()} {}

  void begin(std::uint64_t now) noexcept {
    begin_ns_ = now;
    yields_ = 0;
  }
  /// Something came: an exchange is under way, of which the next part is likely to follow soon,
  /// whatever waits that nothing came to have taught. To sleep between two parts would cost the
  /// peer, too: who wakes us moves no bytes meanwhile.
  void begin_again(std::uint64_t now) noexcept {
    begin(now);
    limit_ = counts_yields_ ? limit_ : std::max(limit_, budget_.price());
  }
  [[nodiscard]] bool has_begun() const noexcept { return begin_ns_ != 0; }
  [[nodiscard]] bool is_left(std::uint64_t now) const noexcept {
    return counts_yields_ ? yields_ < limit_ : now - begin_ns_ < limit_;
  }
  [[nodiscard]] std::uint64_t polled_ns(std::uint64_t now) const noexcept {
    return now - begin_ns_;
  }
  void count_yield() noexcept { ++yields_; }
  /// It sleeps now: how many yields that saved is not known.
  void note_sleep() noexcept { has_slept_ = true; }
  [[nodiscard]] bool has_slept() const noexcept { return has_slept_; }
  void end(std::uint64_t now) noexcept {
    if (counts_yields_) {
      budget_.end_if_all_is_known(has_slept_ ? budget_.price() : yields_, limit_);
    } else {
      budget_.end(now - begin_ns_);
    }
  }

 private:
  SpinBudget& budget_;
  const bool counts_yields_;
  bool has_slept_ = false;
  std::uint64_t limit_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t yields_ = 0;
};

}  // namespace

/// By the rule of waits it would sleep for the whole of a wait that is always a little longer
/// than the price of a sleep, and each time pay that as well: 1 MB that its receiver reads in 100
/// us took 170. For once the end is known.
void Progress::expect_within(std::uint64_t ns) noexcept {
  if (ns > kExpectedNsMax || impl_->polling.price() == 0) {
    return;
  }
  const std::uint64_t now = now_here();
  std::atomic<std::uint64_t>& until = impl_->expected_until_ns;
  const std::uint64_t begin = std::max(now, until.load(std::memory_order_relaxed));
  until.store(std::min(begin + ns, now + kExpectedNsMax), std::memory_order_relaxed);
}

threads::Wake Progress::await_signal(threads::KernelWaiter& waiter,
                                     std::uint64_t deadline_ns) noexcept {
  const bool is_crowded = options_.is_oversubscribed;
  Patience patience{is_crowded ? impl_->yielding : impl_->polling, is_crowded};
  Looking looking{impl_->standby};
  Retreat::Wait retreat{impl_->retreat};
  bool was_beside = false;
  bool slept_long = false;
  bool yields = false;
  const auto leave = [&](threads::Wake wake) {
    if (patience.has_begun()) {  // Else it was over at the first look: that costs no clock.
      patience.end(now_here());
    }
    if (patience.has_slept()) {
      impl_->naps.fetch_add(1, std::memory_order_relaxed);
    }
    // Who may have been woken to sleep for the network passes that on, also if its event came
    // since.
    if (was_beside && !impl_->has_sleeper.load()) {
      impl_->wake_aside();
    }
    if (slept_long) {
      call_worker();
    }
    return wake;
  };
  bool has_come = false;  // Something else than what is waited for, in rounds without a clock.
  std::uint32_t rounds_without_clock = 15;  // Of 16: the clock costs as much as a poll...
  std::uint64_t begin_ns = 0;
  std::uint64_t turn_ns = 0;  // Since the last yield.
  for (std::uint32_t round = 0;; ++round) {
    has_come = poll_once(threads::SchedulingPoint::idle, 0) != 0 || has_come;
    if (threads::try_take_signal(waiter)) {
      return leave(threads::Wake::signalled);
    }
    const bool has_company = impl_->has_company();
    if (!is_crowded && !yields && !has_company && (round & rounds_without_clock) != 0) {
      cpu_pause();
      continue;
    }
    if (deadline_ns != kNever && now_ns() >= deadline_ns) {
      return leave(threads::Wake::timed_out);
    }
    while (retreat.is_due()) {
      looking.end();
      if (impl_->sleep_in_retreat(waiter, deadline_ns, retreat)) {
        return leave(threads::Wake::signalled);
      }
      if (deadline_ns != kNever && now_ns() >= deadline_ns) {
        return leave(threads::Wake::timed_out);
      }
    }
    const std::uint64_t now = now_here();
    if (round == 0) {
      begin_ns = turn_ns = now;
    } else {
      looking.begin();
    }
    if (round == 16 && now - begin_ns > kSlowLooksNs) {
      rounds_without_clock = 3;  // ...but of 4 where that is calls of the system.
    }
    if (has_come) {
      patience.begin_again(now);
      has_come = false;
    } else if (!patience.has_begun()) {
      patience.begin(now);
    }
    // Whoever progresses in the place of a program that computes may need this processor. Asked
    // less and less often.
    if (!is_crowded && round != 0 && (round & (round - 1)) == 0) {
      yields = wake_absent(now - begin_ns > kMomentOfAbsenceNs) || yields;
    }
    const bool is_expected = !is_crowded && !yields && !has_company &&
                             now < impl_->expected_until_ns.load(std::memory_order_relaxed);
    if (is_expected || patience.is_left(now)) {
      if (is_crowded || yields || has_company || rounds_without_clock == 3 ||
          patience.polled_ns(now) > kAloneNs || now - turn_ns > kTurnNs) {
        turn_ns = now;
        patience.count_yield();
        if (yields) {  // To who progresses for a peer, and is welcome here.
          raw_system_call(SYS_sched_yield);
        } else {
          yield();
        }
      }
      continue;
    }
    if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kInHook)) {
      patience.note_sleep();
      looking.begin();
      const std::uint64_t sleeps = impl_->sleeps.load(std::memory_order_relaxed);
      const bool has_slept =
          sleep_here(deadline_ns, waiter.word, threads::KernelWaiter::kInHook, false);
      threads::leave_sleep(waiter);
      if (has_slept) {
        const std::uint64_t end_ns = now_here();
        slept_long = slept_long || end_ns - now > Standby::kLongNs;
        if (impl_->sleeps.load(std::memory_order_relaxed) != sleeps) {
          turn_ns = end_ns;
        } else if (end_ns - turn_ns > kTurnNs) {  // Nobody may sleep now.
          turn_ns = end_ns;
          yield();
        }
      } else {
        sleep_beside(waiter, deadline_ns);
        was_beside = true;
      }
    }
  }
}

}  // namespace sterna::progress
