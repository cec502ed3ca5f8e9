// The program: how it hands the runtime over when it leaves a call, and takes it back.
#include <ctime>

#include <sched.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "runtime/background/background.h"

namespace sterna::runtime {
namespace {

using net::AbsenceFlag;

constexpr int kPollsMax = 4;  // Of the program, before it leaves the rest to the thread.
constexpr std::uint32_t kPausesBeforeYield = 1000;

// An absence that is not worth the wake-up where the kernel wakes the thread: that takes ten
// microseconds, and two copies by one processor as long again as by two.
constexpr std::uint64_t kShortForKernelNs = 30'000;

// Of several threads that call want(); there is one background a process.
constinit SpinLock want_lock;

/// Of the calling thread.
std::uint64_t processor_time_ns() noexcept {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

constinit std::atomic<Background*> process_background{nullptr};

Background::Background(const Options& options) noexcept
    : options_{options},
      flag_{options.tick_ns == 0 && options.transport->absence().flag() != nullptr
                ? options.transport->absence().flag()
                : &own_flag_},
      kept_{options.transport->absence().kept()},
      has_network_{!options.transport->absence().is_seen_by_all()},
      needs_descriptors_{has_network_ && options.tick_ns == 0},
      bell_{*flag_, needs_descriptors_ ? options.progress->descriptor() : -1},
      is_shared_{options.is_shared} {
  if (!looks_by_clock()) {
    options_.transport->absence().leave_reads(!options.is_shared);
  }
}

Background::~Background() {
  if (is_away_) {
    come_back();
  }
  is_stopped_.store(true, std::memory_order_seq_cst);
  if (has_thread_) {
    bell_.ring();
    (void)pthread_join(thread_, nullptr);
  }
  flag_->store(AbsenceFlag::kPresent, std::memory_order_relaxed);
}

std::uint32_t Background::away(bool is_for_moment) const noexcept {
  return needs_descriptors_ ? AbsenceFlag::kAwayByBell
         : is_for_moment    ? AbsenceFlag::kAwayForMoment
                            : AbsenceFlag::kAway;
}

void Background::exclude() noexcept {
  if (is_away_) {
    come_back();
  }
}

void Background::share() noexcept {
  options_.transport->absence().leave_reads(false);
  // Release: who polls from now on without being the owner sees that locks are taken.
  is_shared_.store(true, std::memory_order_release);
  if (has_thread_ && has_open()) {
    // It looks in vain for an owner that is nobody, and goes to sleep.
    looks_by_clock() ? want_ticks() : bell_.ring();
  }
}

void Background::want() noexcept {
  const bool is_shared = is_shared_.load(std::memory_order_relaxed);
  if (is_shared) {
    want_lock.lock();
  }
  if (!is_wanted_.exchange(true, std::memory_order_relaxed) && !has_thread_ && !has_failed_) {
    start();
  }
  if (is_shared) {
    if (has_thread_ && looks_by_clock()) {
      want_ticks();
    } else if (has_thread_) {
      keep_off_the_program();
      bell_.ring();  // It may have come already, and its sender gone to sleep.
    }
    want_lock.unlock();
  }
}

void Background::expect_answer(std::uint32_t rank, std::uint64_t bytes) noexcept {
  if (!needs_descriptors_ || !has_thread_ || flag_ != &own_flag_ ||
      is_shared_.load(std::memory_order_relaxed) ||
      is_left_to(duty_.load(std::memory_order_relaxed)) ||
      !options_.transport->absence().leaves_whole(rank, bytes)) {
    return;
  }
  (void)options_.progress->hear();
  if (poll_before_leaving() && !is_shared_.load(std::memory_order_relaxed)) {
    bell_.arm();
    told_at_poll_ = options_.progress->counters().polls;
  }
}

/// Nobody has polled since the bell was armed: what has come since rings.
bool Background::is_told() const noexcept {
  return told_at_poll_ != 0 && bell_.is_armed() &&
         told_at_poll_ == options_.progress->counters().polls;
}

bool Background::has_open() const noexcept {
  return options_.transport->absence().has_open(*options_.endpoint);
}

void Background::serve_also(Work work) noexcept {
  while (is_work_taken_.exchange(true, std::memory_order_acquire)) {
    raw_system_call(SYS_sched_yield);
  }
  work_ = work;
  is_work_taken_.store(false, std::memory_order_release);
}

void Background::advance_work() noexcept {
  if (is_work_taken_.exchange(true, std::memory_order_acquire)) {
    return;
  }
  if (work_.advance != nullptr) {
    work_.advance(work_.argument);
  }
  is_work_taken_.store(false, std::memory_order_release);
}

void Background::watch_sent() noexcept {
  if (!is_shared_.load(std::memory_order_relaxed) && !looks_by_clock() &&
      options_.transport->absence().tells_by_absence()) {
    is_wanted_.store(true, std::memory_order_relaxed);
  }
}

/// Nothing is handed over, and perhaps the end of this absence looked at: what the calls themselves
/// take, as copies, is no computation.
void Background::has_nothing_open() noexcept {
  const net::Absence absence = options_.transport->absence();
  absence.has_nothing_open();
  if (is_watched_ || absence.tells_by_absence()) {
    is_watched_ = true;
    is_away_ = true;
    set_away();
  }
}

void Background::set_away() noexcept {
  left_ns_ = now_ns();
  away_since_ns_.store(left_ns_, std::memory_order_relaxed);
  rung_at_ns_ = 0;
}

/// What a network has not taken yet goes on meanwhile, though the call that sent it has ended.
void Background::leave_open() noexcept {
  if (kept_.is_any()) {
    ++depth_;  // Within a call.
    want();
    --depth_;
  }
  looks_by_clock() ? leave_to_ticks() : go_away();
}

void Background::go_away() noexcept {
  advance_work();
  if (!has_thread_ || !has_open()) {
    is_wanted_.store(false, std::memory_order_relaxed);
    has_nothing_open();
    return;
  }
  keep_off_the_program();
  // A thread on duty looks by itself, as often as it thinks right.
  const bool must_tell =
      needs_descriptors_ && !is_left_to(duty_.load(std::memory_order_relaxed)) && !is_told();
  if (must_tell) {
    (void)options_.progress->hear();
  }
  flag_->store(away(!computes_), std::memory_order_seq_cst);
  // Who falls asleep either sees it, and rings, or is seen asleep: what was left to it is read.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // What came before a peer could see that is found now, what comes later the peer, or the kernel,
  // rings for. Copies under way are left to the thread: the call shall end, and where more such
  // calls follow, the messages they start go on side by side.
  bool must_look =
      flag_ == &own_flag_ ? options_.transport->absence().has_work() : !poll_until_quiet();
  if (must_tell && !must_look) {
    must_look = !computes_ || !poll_before_leaving();  // Who comes and goes has it on duty.
  }
  if (is_shared_.load(std::memory_order_relaxed)) {
    return;  // Since the poll, which gave way to a second thread.
  }
  if (!has_open()) {
    flag_->store(AbsenceFlag::kPresent, std::memory_order_relaxed);
    watch();
    has_nothing_open();
    return;
  }
  is_watched_ = false;
  is_away_ = true;
  set_away();
  owner_.store(Owner::nobody, std::memory_order_seq_cst);  // A. And before the look at the duty.
  // The bell is looked at after that: who has heard it in vain has said so before it slept again.
  const Duty duty = duty_.load(std::memory_order_seq_cst);
  // D: after A. A peer has rung since the flag was set, for what the polls may not have found.
  const std::uint32_t flag = flag_->load(std::memory_order_seq_cst);
  const bool was_rung =
      !needs_descriptors_ && (flag == AbsenceFlag::kRung || flag == AbsenceFlag::kHeard);
  must_look = must_look || was_rung;
  const bool is_asleep = needs_descriptors_ && !is_left_to(duty) && !is_told();
  const bool may_nap =
      (duty == Duty::naps && is_left_to(duty)) || (must_look && keeps_work_to_itself());
  told_at_poll_ = 0;
  if (is_asleep || (must_look && !may_nap)) {
    must_look ? bell_.ring() : bell_.arm();
    rung_at_ns_ = processor_time_ns();
    left_ns_ = now_ns();
  } else if (was_rung) {
    flag_->store(away(!computes_), std::memory_order_seq_cst);  // It may ring again.
  }
}

/// Whether a thread that does this looks soon enough after a program that goes away now. A nap is
/// for who comes and goes; who computes by its habit has it ended by what comes.
bool Background::is_left_to(Duty duty) const noexcept {
  return duty == Duty::looks || (duty == Duty::naps && !computes_);
}

/// Who waits at once moves its messages itself: to wake the thread would take longer than it is
/// away, and for the thread the processor of a peer that copies at the same time. Where it computes
/// after all, a peer that waits rings, or the thread looks after its nap. False: that is none.
bool Background::keeps_work_to_itself() noexcept {
  const net::Absence absence = options_.transport->absence();
  if (needs_descriptors_) {
    return false;
  }
  absence.has_left_receive(left_ns_);
  if (!absence.is_about_to_wait()) {
    return false;
  }
  // C: before the look at the nap. Who ends that one says so, and looks here then: in the one order
  // of the four either it finds the work, or we find that it naps no more.
  has_kept_work_.store(true, std::memory_order_seq_cst);
  return is_napping_.load(std::memory_order_seq_cst);
}

/// To find that nothing has come costs less than to wake the thread for it, and what has come is
/// mostly short. Copies under way are left to the thread. False: something is left to do, or comes
/// of which the kernel would not tell.
bool Background::poll_before_leaving() noexcept {
  constexpr int kPolls = 3;
  options_.transport->absence().leave_copies(true);
  bool is_heard = false;
  for (int polls = 0; polls < kPolls && !is_heard; ++polls) {
    if (options_.progress->poll() != 0) {
      advance_work();
    }
    is_heard = options_.transport->absence().has_work() || options_.progress->hear();
  }
  options_.transport->absence().leave_copies(false);
  return is_heard && !options_.transport->absence().has_work();
}

/// False: something is left to do.
bool Background::poll_until_quiet() noexcept {
  const net::Absence absence = options_.transport->absence();
  bool is_quiet = false;
  absence.leave_copies(true);  // Also those that begin by what is found here.
  for (int polls = 0; polls < kPollsMax && !is_quiet && !absence.has_work(); ++polls) {
    is_quiet = options_.progress->poll() == 0;
    if (!is_quiet) {
      advance_work();
    }
  }
  absence.leave_copies(false);
  return is_quiet && !absence.has_work();
}

/// How long the program was away tells how long it will be. To ring takes time, and whom it wakes
/// may take the processor from the program: not its habit.
void Background::learn_habit(std::uint64_t back_ns) noexcept {
  const std::uint64_t short_ns = needs_descriptors_ ? kShortForKernelNs : kShortAbsenceNs;
  const bool is_short = back_ns - away_since_ns_.load(std::memory_order_relaxed) < short_ns ||
                        (rung_at_ns_ != 0 && processor_time_ns() - rung_at_ns_ < short_ns);
  const std::uint32_t count = is_short ? short_absences_.load(std::memory_order_relaxed) + 1 : 0;
  short_absences_.store(count, std::memory_order_relaxed);
  computes_ = count < kShortAbsences;
}

/// The runtime is the program's.
void Background::tell_habit(std::uint64_t back_ns) noexcept {
  if (looks_by_clock()) {
    return;  // Whose turn it is is the system's, no habit.
  }
  options_.transport->absence().leave_reads(computes_);
  options_.transport->absence().was_away(left_ns_, back_ns);
}

void Background::come_back() noexcept {
  const std::uint64_t back_ns = now_ns();
  if (!looks_by_clock()) {
    learn_habit(back_ns);
  }
  if (is_watched_) {  // It had handed over nothing.
    is_watched_ = is_away_ = false;
    tell_habit(back_ns);
    return;
  }
  // Where processes outnumber processors it has lost its own.
  std::uint32_t pauses = looks_by_clock() ? kPausesBeforeYield : 0;
  Owner expected = Owner::nobody;
  while (!owner_.compare_exchange_weak(expected, Owner::program, std::memory_order_acquire,  // B
                                       std::memory_order_relaxed)) {
    expected = Owner::nobody;
    is_program_waiting_.store(true, std::memory_order_relaxed);
    if (++pauses < kPausesBeforeYield) {
      cpu_pause();
      continue;
    }
    cpu_set_t set;  // It has lost its processor within a poll: it may have ours.
    if (pauses == kPausesBeforeYield && ::sched_getaffinity(0, sizeof set, &set) == 0) {
      (void)::sched_setaffinity(thread_id_.load(std::memory_order_acquire), sizeof set, &set);
      avoided_processor_ = -1;
      visits_ = 0;
    }
    raw_system_call(SYS_sched_yield);
  }
  is_away_ = false;
  tell_habit(back_ns);
  is_program_waiting_.store(false, std::memory_order_relaxed);
  flag_->store(AbsenceFlag::kPresent, std::memory_order_relaxed);
  if (needs_descriptors_ && computes_) {  // Else it is away again soon.
    bell_.disarm();
  }
}

/// It shall run beside the program, never instead of it: where the program is now is left out.
void Background::keep_off_the_program() noexcept {
  if (visits_++ % 16 != 0) {
    return;
  }
  const int processor = ::sched_getcpu();
  const std::int32_t thread = thread_id_.load(std::memory_order_acquire);
  if (processor == avoided_processor_ || thread == 0 || processor < 0) {
    visits_ = thread == 0 ? 0 : visits_;
    return;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1) {
    CPU_CLR(processor, &set);
    (void)::sched_setaffinity(thread, sizeof set, &set);
    avoided_processor_ = processor;
  }
}

}  // namespace sterna::runtime
