// The thread that progresses while the program computes: when it wakes, looks, and rests.
#include "runtime/background.h"

#include <algorithm>
#include <ctime>

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "threads/carriers/kernel_thread.h"

namespace sterna::runtime {
namespace {

using net::AbsenceFlag;

// Looks in vain before it rests: a few microseconds, as long as an answer takes that is near. Where
// the kernel ends the rest, and a look is a call of it, one, and one after the rest has begun.
constexpr std::uint32_t kLooksInVain = 64;
constexpr std::uint32_t kLooksOfNetwork = 2;
constexpr int kPollsMax = 4;  // Of the program, before it leaves the rest to the thread.
// While copies are under way that the network takes when it has room, which wakes nobody.
constexpr std::uint64_t kRestMinNs = 20'000;
constexpr std::uint64_t kNapNs = 1'000'000;  // Beside a program that comes and goes.
constexpr std::uint64_t kRestMaxNs = 10'000'000;
// With nothing moved for so long, a program that nobody sees come back is taken to wait by itself.
constexpr std::uint64_t kQuietNs = 2'000'000'000;
constexpr std::uint32_t kPausesBeforeYield = 1000;
constexpr std::uint64_t kShortAbsenceNs = 15'000;
constexpr std::uint32_t kShortAbsences = 2;  // One after the other: more are likely to come.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

// Of several threads that call want(); there is one background a process.
constinit SpinLock want_lock;

timespec time_of(std::uint64_t ns) noexcept {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

constinit std::atomic<Background*> process_background{nullptr};

Background::Background(const Options& options) noexcept
    : options_{options},
      flag_{options.transport->absence_flag() != nullptr ? options.transport->absence_flag()
                                                         : &own_flag_},
      needs_descriptors_{!options.transport->rings_absent()},
      bell_{*flag_, needs_descriptors_ ? options.progress->descriptor() : -1},
      is_shared_{options.is_shared} {
  options_.transport->leave_reads(!options.is_shared);
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

std::uint32_t Background::away() const noexcept {
  return needs_descriptors_ ? AbsenceFlag::kAwayByBell : AbsenceFlag::kAway;
}

void Background::start() noexcept {
  has_thread_ = bell_.open() &&
                threads::start_kernel_thread(thread_, {.stack_bytes = kStackBytes,
                                                       .main = thread_main,
                                                       .argument = this,
                                                       .signals = threads::Signals::faults}) == 0;
  has_failed_ = !has_thread_;  // The program progresses by itself, as it would without.
}

void* Background::thread_main(void* background) noexcept {
  auto& self = *static_cast<Background*>(background);
  (void)::prctl(PR_SET_NAME, "sterna-back", 0, 0, 0);
  (void)::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  self.thread_id_.store(static_cast<std::int32_t>(raw_system_call(SYS_gettid)),
                        std::memory_order_release);
  self.run();
  return nullptr;
}

void Background::exclude() noexcept {
  if (is_away_) {
    come_back();
  }
}

void Background::share() noexcept {
  options_.transport->leave_reads(false);
  // Release: who polls from now on without being the owner sees that locks are taken.
  is_shared_.store(true, std::memory_order_release);
  if (has_thread_ && has_open()) {
    bell_.ring();  // It looks in vain for an owner that is nobody, and goes to sleep.
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
    if (has_thread_) {
      keep_off_the_program();
      bell_.ring();  // It may have come already, and its sender gone to sleep.
    }
    want_lock.unlock();
  }
}

bool Background::has_open() const noexcept {
  return options_.transport->has_open(*options_.endpoint);
}

/// Nothing is handed over.
void Background::watch_absence() noexcept {
  if (is_watched_) {
    is_away_ = true;
    away_since_ns_.store(now_ns(), std::memory_order_relaxed);
  }
}

void Background::go_away() noexcept {
  if (!has_thread_ || !has_open()) {
    is_wanted_.store(false, std::memory_order_relaxed);
    watch_absence();
    return;
  }
  keep_off_the_program();
  // A thread on duty looks by itself, as often as it thinks right.
  const bool is_heard = needs_descriptors_ && !is_on_duty_.load(std::memory_order_relaxed) &&
                        options_.progress->hear();
  flag_->store(away(), std::memory_order_seq_cst);
  // Who falls asleep either sees it, and rings, or is seen asleep: what was left to it is read.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // What came before a peer could see that is found now, what comes later the peer, or the kernel,
  // rings for. Copies under way are left to the thread: the call shall end, and where more such
  // calls follow, the messages they start go on side by side.
  const bool must_look = flag_ == &own_flag_ ? options_.transport->has_work() : !poll_until_quiet();
  if (is_shared_.load(std::memory_order_relaxed)) {
    return;  // Since the poll, which gave way to a second thread.
  }
  if (!has_open()) {
    flag_->store(AbsenceFlag::kPresent, std::memory_order_relaxed);
    watch();
    watch_absence();
    return;
  }
  is_watched_ = false;
  is_away_ = true;
  away_since_ns_.store(now_ns(), std::memory_order_relaxed);
  owner_.store(Owner::nobody, std::memory_order_seq_cst);  // A. And before the look at the duty.
  if (must_look) {
    bell_.ring();
  } else if (needs_descriptors_ && !is_on_duty_.load(std::memory_order_seq_cst)) {
    is_heard ? bell_.arm() : bell_.ring();
  }
}

/// False: something is left to do.
bool Background::poll_until_quiet() noexcept {
  for (int polls = 0; polls < kPollsMax; ++polls) {
    if (options_.transport->has_work()) {
      return false;
    }
    if (options_.progress->poll() == 0) {
      return true;
    }
  }
  return false;
}

/// How long the program was away tells how long it will be.
void Background::learn_habit() noexcept {
  const bool is_short = now_ns() - away_since_ns_.load(std::memory_order_relaxed) < kShortAbsenceNs;
  const std::uint32_t count = is_short ? short_absences_.load(std::memory_order_relaxed) + 1 : 0;
  short_absences_.store(count, std::memory_order_relaxed);
  computes_ = count < kShortAbsences;
}

void Background::come_back() noexcept {
  learn_habit();
  if (is_watched_) {  // It had handed over nothing.
    is_watched_ = is_away_ = false;
    options_.transport->leave_reads(computes_);
    return;
  }
  std::uint32_t pauses = 0;
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
  options_.transport->leave_reads(computes_);
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

void Background::run() noexcept {
  while (sleep_until_rung()) {
    is_on_duty_.store(true, std::memory_order_seq_cst);
    const Looked last = serve();
    is_on_duty_.store(false, std::memory_order_seq_cst);
    if (needs_descriptors_ && flag_->load(std::memory_order_seq_cst) != AbsenceFlag::kPresent) {
      // Who went away since the last look saw us on duty, and left it to us to look.
      last == Looked::program_is_here ? bell_.ring() : bell_.arm();
    }
  }
}

/// False: it is to end.
bool Background::sleep_until_rung() noexcept {
  while (!is_stopped_.load(std::memory_order_seq_cst)) {
    const bool is_rung = bell_.sleep(has_work_ ? rest_ns_ : AwayBell::kForever);
    if (is_rung || has_work_) {
      rest_ns_ = is_rung ? kRestMinNs : std::min(2 * rest_ns_, kRestMaxNs);
      return true;
    }
  }
  return false;
}

/// By its habit.
bool Background::is_away_for_moments() const noexcept {
  return short_absences_.load(std::memory_order_relaxed) >= kShortAbsences;
}

/// Who starts several messages is away between two calls for a moment each time. To take the
/// runtime then makes the next call wait, and moves what is copied from its cache to ours. Where
/// that has been so lately, it is given the time to come back.
bool Background::stays_away() noexcept {
  if (!is_away_for_moments() && !options_.transport->has_left()) {
    return true;
  }
  const std::uint64_t since_ns = away_since_ns_.load(std::memory_order_relaxed);
  const auto is_the_same = [&] {
    return away_since_ns_.load(std::memory_order_relaxed) == since_ns;
  };
  // Asleep: the processor may be that of a peer, which may be what the program waits for.
  for (std::uint64_t now = now_ns(); is_the_same() && now - since_ns < kShortAbsenceNs;
       now = now_ns()) {
    const timespec rest = time_of(since_ns + kShortAbsenceNs - now);
    (void)::nanosleep(&rest, nullptr);
  }
  return is_the_same();
}

/// `is_last`: nobody looks afterwards, so that it is not left to who might be polling now.
Background::Looked Background::look(bool is_last) noexcept {
  const bool is_shared = is_shared_.load(std::memory_order_acquire);
  if (!is_shared) {
    Owner expected = Owner::nobody;
    if (!stays_away() || is_program_waiting_.load(std::memory_order_relaxed) ||
        !owner_.compare_exchange_strong(expected, Owner::background,
                                        std::memory_order_acquire,  // A
                                        std::memory_order_relaxed)) {
      has_work_ = false;
      return Looked::program_is_here;
    }
  }
  progress::Progress& progress = *options_.progress;
  bool is_heard = true;  // Beside other callers the bell may be for one of them.
  if (!is_shared) {
    options_.transport->poll_in_place(true);
    is_heard = !needs_descriptors_ || progress.hear();
  }
  const std::uint32_t events = is_last ? progress.poll_in_turn() : progress.poll();
  if (events != 0) {
    moves_.fetch_add(1, std::memory_order_relaxed);
  }
  has_work_ = options_.transport->has_work() || !is_heard;
  if (!is_shared) {
    options_.transport->poll_in_place(false);
    owner_.store(Owner::nobody, std::memory_order_release);  // B
  }
  return events != 0 ? Looked::something : Looked::nothing;
}

/// Until the program is back or, where peers ring, nothing comes any more. A program of which
/// several threads call is never seen to be back: then until nothing has come for a while.
Background::Looked Background::serve() noexcept {
  std::uint32_t in_vain = 0;
  std::uint64_t moved_ns = now_ns();
  std::uint64_t rest_ns = kRestMinNs;
  if (is_shared_.load(std::memory_order_relaxed)) {
    flag_->store(AbsenceFlag::kPresent, std::memory_order_seq_cst);
  }
  while (!is_stopped_.load(std::memory_order_relaxed)) {
    switch (look()) {
      case Looked::something:
        in_vain = 0;
        moved_ns = now_ns();
        rest_ns = kRestMinNs;
        continue;
      case Looked::nothing:
        break;
      case Looked::program_is_here:
        if (!needs_descriptors_ || rest_ns >= kRestMaxNs || !is_away_for_moments()) {
          return Looked::program_is_here;
        }
        nap();  // It will be away again soon: then it need not arm the bell.
        rest_ns = 2 * std::max(rest_ns, kNapNs);
        continue;
    }
    if (++in_vain < (needs_descriptors_ ? kLooksOfNetwork : kLooksInVain)) {
      cpu_pause();
      continue;
    }
    const bool is_shared = is_shared_.load(std::memory_order_relaxed);
    if (needs_descriptors_ && is_shared) {
      if (now_ns() - moved_ns > kQuietNs) {
        return Looked::nothing;
      }
      sleep_for_network(rest_ns);
      rest_ns = std::min(2 * rest_ns, kRestMaxNs);
      continue;
    }
    std::uint32_t before = is_shared ? AbsenceFlag::kPresent : AbsenceFlag::kRung;
    (void)flag_->compare_exchange_strong(before, away(), std::memory_order_seq_cst);
    // Who sent before it saw that is found now.
    if (const Looked last = look(true); last != Looked::something) {
      return last;
    }
    in_vain = 0;
  }
  return Looked::nothing;
}

void Background::nap() noexcept {
  const timespec limit = time_of(kNapNs);
  (void)::nanosleep(&limit, nullptr);
}

/// Until something arrives, or for so long.
void Background::sleep_for_network(std::uint64_t ns) noexcept {
  const timespec limit = time_of(ns);
  pollfd ready{.fd = options_.progress->descriptor(), .events = POLLIN, .revents = 0};
  (void)::ppoll(&ready, 1, &limit, nullptr);
}

}  // namespace sterna::runtime
