// The thread: how it begins, when it wakes, looks, and rests.
#include <algorithm>
#include <ctime>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "runtime/background/background.h"
#include "threads/carriers/kernel_thread.h"

namespace sterna::runtime {
namespace {

using net::AbsenceFlag;

// Looks in vain before it rests: a few microseconds, as long as an answer takes that is near. Where
// the kernel ends the rest, and a look is calls of it, one: a peer may need this processor.
constexpr std::uint32_t kLooksInVain = 64;
constexpr std::uint32_t kLooksOfNetwork = 1;
// Looks that moved something before the receiver may have this processor: as much as stays in one
// cache while both copy it. Else all of the shared memory is filled first, and the receiver begins
// when the program is back: 4 MB beside 200 us of computation took 340 us, and take 280.
constexpr std::uint32_t kLooksInARow = 8;
constexpr std::uint32_t kPartsMax = 64;  // Looks in a row that the network had more for.
// While copies are under way that the network takes when it has room, which wakes nobody.
constexpr std::uint64_t kRestMinNs = 20'000;
// Beside a program that comes and goes: longer each time, since a look takes a peer's processor.
constexpr std::uint64_t kNapNs = 1'000'000;
constexpr std::uint64_t kNapMaxNs = 4'000'000;
constexpr std::uint64_t kRestMaxNs = 10'000'000;
// With nothing moved for so long, a program that nobody sees come back is taken to wait by itself.
constexpr std::uint64_t kQuietNs = 2'000'000'000;

constexpr std::size_t kStackBytes = std::size_t{1} << 20;

timespec time_of(std::uint64_t ns) noexcept {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

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
  self.looks_by_clock() ? self.run_by_clock() : self.run();
  return nullptr;
}

void Background::run() noexcept {
  while (sleep_until_rung()) {
    duty_.store(Duty::looks, std::memory_order_seq_cst);
    const Looked last = serve();
    duty_.store(Duty::sleeps, std::memory_order_seq_cst);
    if (!needs_descriptors_) {
      if (last == Looked::program_is_here) {
        leave_to_program();
      }
      continue;
    }
    if (flag_->load(std::memory_order_seq_cst) == AbsenceFlag::kPresent) {
      continue;
    }
    if (last != Looked::program_is_here) {
      bell_.arm();
    } else if (owner_.load(std::memory_order_seq_cst) == Owner::nobody) {
      // Who went away since the last look may have seen us on duty, and left it to us to look. Who
      // is just going (A) sees that we are not.
      bell_.ring();
    }
  }
}

/// A peer has rung while the program looks a last time before it goes away: to look in vain until
/// it has gone would take the peer its processor. Either the program sees, once it has gone (D),
/// that it was rung for, or we see it gone, and look again. tests: background_model_test.cc.
void Background::leave_to_program() noexcept {
  std::uint32_t flag = AbsenceFlag::kRung;
  if (flag_->compare_exchange_strong(flag, AbsenceFlag::kHeard, std::memory_order_seq_cst) &&
      owner_.load(std::memory_order_seq_cst) == Owner::nobody) {
    flag = AbsenceFlag::kHeard;
    (void)flag_->compare_exchange_strong(flag, AbsenceFlag::kRung, std::memory_order_seq_cst);
  }
}

/// After a sleep: the program has left something undone since the last one. Then the next one will
/// be short, too.
bool Background::is_work_kept() noexcept {
  bool is_kept = has_kept_work_.exchange(false, std::memory_order_seq_cst);
  if (!is_kept && is_napping_.load(std::memory_order_relaxed)) {
    is_napping_.store(false, std::memory_order_seq_cst);
    is_kept = has_kept_work_.exchange(false, std::memory_order_seq_cst);
  }
  if (is_kept) {
    is_napping_.store(true, std::memory_order_seq_cst);
  }
  return is_kept;
}

/// False: it is to end.
bool Background::sleep_until_rung() noexcept {
  while (!is_stopped_.load(std::memory_order_seq_cst)) {
    const bool naps = is_napping_.load(std::memory_order_relaxed);
    const bool is_rung =
        bell_.sleep(has_work_ ? rest_ns_ : naps ? kNapMaxNs : AwayBell::kForever);
    const bool is_kept = is_work_kept();
    if (is_rung || has_work_ || is_kept) {
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
  if (!is_away_for_moments() && !options_.transport->absence().has_left()) {
    return true;
  }
  const std::uint64_t since_ns = away_since_ns_.load(std::memory_order_relaxed);
  const auto is_the_same = [&] {
    return away_since_ns_.load(std::memory_order_relaxed) == since_ns;
  };
  if (since_ns == awaited_absence_ns_) {
    return is_the_same();
  }
  // Asleep: the processor may be that of a peer, which may be what the program waits for, or of the
  // program itself, which we have interrupted in its ringing.
  const std::uint64_t until_ns = now_ns() + kShortAbsenceNs;
  for (std::uint64_t now = now_ns(); is_the_same() && now < until_ns; now = now_ns()) {
    const timespec rest = time_of(until_ns - now);
    (void)::nanosleep(&rest, nullptr);
  }
  awaited_absence_ns_ = since_ns;
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
      has_work_ = has_open_ = false;
      return Looked::program_is_here;
    }
  }
  progress::Progress& progress = *options_.progress;
  if (!is_shared) {
    options_.transport->absence().poll_in_place(true);
    if (has_network_) {
      (void)progress.hear();
    }
  }
  const std::uint32_t events = is_last ? progress.poll_in_turn() : progress.poll();
  if (events != 0) {
    moves_.fetch_add(1, std::memory_order_relaxed);
    advance_work();
  }
  // Beside other callers the bell may be for one of them.
  const bool is_heard = is_shared || !needs_descriptors_ || progress.hear();
  has_work_ = options_.transport->absence().has_work() || !is_heard;
  if (!is_shared) {
    has_open_ = has_open();
    options_.transport->absence().poll_in_place(false);
    owner_.store(Owner::nobody, std::memory_order_release);  // B
  }
  // A part of a packet is no event, but has been received, and more of it waits.
  parts_ = events != 0 || is_heard ? 0 : parts_ + 1;
  return events != 0 || (parts_ != 0 && parts_ < kPartsMax) ? Looked::something : Looked::nothing;
}

/// Until the program is back or, where peers ring, nothing comes any more. A program of which
/// several threads call is never seen to be back: then until nothing has come for a while.
Background::Looked Background::serve() noexcept {
  std::uint32_t in_vain = 0;
  std::uint64_t moved_ns = now_ns();
  std::uint64_t rest_ns = kRestMinNs;
  std::uint64_t seen_ns = 0;  // The last absence.
  bool is_for_others = false;  // What the network's descriptor tells of.
  std::uint32_t looks = 0;    // That moved something.
  if (is_shared_.load(std::memory_order_relaxed)) {
    flag_->store(AbsenceFlag::kPresent, std::memory_order_seq_cst);
  }
  while (!is_stopped_.load(std::memory_order_relaxed)) {
    switch (look()) {
      case Looked::something:
        in_vain = 0;
        is_for_others = false;
        moved_ns = now_ns();
        rest_ns = rest_ns_ = kRestMinNs;
        if ((needs_descriptors_ || ++looks % kLooksInARow == 0) &&
            options_.transport->absence().has_work()) {
          // Who takes what has been sent may wait for this processor.
          raw_system_call(SYS_sched_yield);
        }
        continue;
      case Looked::nothing:
        break;
      case Looked::program_is_here:
        if (const std::uint64_t since_ns = away_since_ns_.load(std::memory_order_relaxed);
            since_ns != seen_ns) {
          seen_ns = since_ns;
          rest_ns = kRestMinNs;
        }
        if (!needs_descriptors_ || rest_ns >= kRestMaxNs || !is_away_for_moments()) {
          return Looked::program_is_here;
        }
        nap();  // It will be away again soon: then it need not arm the bell.
        rest_ns = 2 * std::max(rest_ns, kNapNs);
        continue;
    }
    if (++in_vain < (needs_descriptors_ ? kLooksOfNetwork : kLooksInVain)) {
      if (options_.transport->absence().has_work()) {
        // The peer has to make room, and may wait for this processor: nobody tells of room.
        raw_system_call(SYS_sched_yield);
      } else {
        cpu_pause();
      }
      continue;
    }
    const bool is_shared = is_shared_.load(std::memory_order_relaxed);
    if (needs_descriptors_ && is_shared) {
      if (now_ns() - moved_ns > kQuietNs) {
        return Looked::nothing;
      }
      // Whom it tells reads it; if that was not us, it goes on to tell until that one is back.
      if (is_for_others) {
        const timespec rest = time_of(std::min(rest_ns, kNapNs));
        (void)::nanosleep(&rest, nullptr);
      } else {
        is_for_others = sleep_for_network(rest_ns);
      }
      rest_ns = std::min(2 * rest_ns, kRestMaxNs);
      continue;
    }
    if (flag_ == &own_flag_ && !is_shared) {
      return Looked::nothing;  // Nobody but the kernel rings: arm() looks at what came since.
    }
    std::uint32_t before = is_shared ? AbsenceFlag::kPresent : AbsenceFlag::kRung;
    (void)flag_->compare_exchange_strong(before, away(false), std::memory_order_seq_cst);
    // Who sent before it saw that is found now.
    if (const Looked last = look(true); last != Looked::something) {
      return last;
    }
    in_vain = 0;
  }
  return Looked::nothing;
}

/// By who has seen the program in a call, or away for a moment.
void Background::nap() noexcept {
  duty_.store(Duty::naps, std::memory_order_seq_cst);
  (void)bell_.sleep(0);  // What rang till now is left to the nap, or found by the next look.
  // Who went away to compute since that look may have seen us look, and left it to us. Who is just
  // going (A) sees that we nap, and has what comes wake us.
  if (is_away_for_moments() || owner_.load(std::memory_order_seq_cst) != Owner::nobody) {
    rest_ns_ = std::clamp(4 * rest_ns_, kNapNs, kNapMaxNs);
    rest_ns_ = bell_.sleep(rest_ns_) ? kRestMinNs : rest_ns_;
  }
  duty_.store(Duty::looks, std::memory_order_seq_cst);
}

/// Until something arrives, or for so long. False: nothing has.
bool Background::sleep_for_network(std::uint64_t ns) noexcept {
  const timespec limit = time_of(ns);
  pollfd ready{.fd = options_.progress->descriptor(), .events = POLLIN, .revents = 0};
  return ::ppoll(&ready, 1, &limit, nullptr) > 0;
}

}  // namespace sterna::runtime
