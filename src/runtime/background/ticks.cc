// Where processes outnumber processors: the thread looks by the clock.
#include <algorithm>

#include "runtime/background/background.h"

namespace sterna::runtime {
namespace {

// Ticks in a row with nothing open, before it sleeps until the program wakes it: a program that
// computes and sends in turn does so once, and not at each of its steps.
constexpr std::uint64_t kIdleTicksMax = 16;
// Where several threads call it cannot look whether something is open.
constexpr std::uint64_t kQuietNs = 2'000'000'000;
// After a look that moved something the peer may be about to do the next part.
constexpr std::uint64_t kFirstRestPart = 16;
constexpr std::uint64_t kWorkRestPart = 4;  // And where a part of something is left to do.
constexpr std::uint32_t kLooksInARow = 64;

}  // namespace

void Background::leave_to_ticks() noexcept {
  advance_work();  // What the call has moved last, of which no event comes any more.
  if (!has_thread_ || !has_open()) {
    is_wanted_.store(false, std::memory_order_relaxed);
    return;
  }
  is_away_ = true;
  owner_.store(Owner::nobody, std::memory_order_release);  // A
  want_ticks();
}

/// As C in keeps_work_to_itself(): either the thread finds that something is wanted, or we find
/// that it does not tick.
void Background::want_ticks() noexcept {
  has_kept_work_.store(true, std::memory_order_seq_cst);
  if (!is_napping_.load(std::memory_order_seq_cst)) {
    bell_.ring();
  }
}

void Background::run_by_clock() noexcept {
  std::uint64_t idle_ns = 0;
  std::uint64_t rest_ns = options_.tick_ns;
  is_napping_.store(true, std::memory_order_seq_cst);
  while (!is_stopped_.load(std::memory_order_seq_cst)) {
    sleep_and_hear(rest_ns);
    idle_ns += rest_ns;
    if (has_kept_work_.exchange(false, std::memory_order_seq_cst)) {
      idle_ns = 0;
    }
    std::uint32_t looks = 0;
    while (looks < kLooksInARow && look() == Looked::something) {
      ++looks;
    }
    rest_ns = looks != 0
                  ? options_.tick_ns / kFirstRestPart
                  : std::min(2 * rest_ns, options_.tick_ns / (has_work_ ? kWorkRestPart : 1));
    if (looks != 0 || has_open_) {
      idle_ns = 0;
    }
    const bool is_shared = is_shared_.load(std::memory_order_relaxed);
    if (idle_ns >= (is_shared ? kQuietNs : kIdleTicksMax * options_.tick_ns)) {
      sleep_until_wanted();
      idle_ns = 0;
    }
  }
}

/// Until it is rung for, but no longer than that. The next sleep is one again; it ends at once if
/// that was the ring of who stops it and we had looked for that before.
void Background::sleep_and_hear(std::uint64_t ns) noexcept {
  (void)bell_.sleep(ns);
  flag_->store(net::AbsenceFlag::kPresent, std::memory_order_seq_cst);
}

void Background::sleep_until_wanted() noexcept {
  is_napping_.store(false, std::memory_order_seq_cst);
  if (!has_kept_work_.load(std::memory_order_seq_cst) &&
      !is_stopped_.load(std::memory_order_seq_cst)) {
    sleep_and_hear(AwayBell::kForever);
  }
  is_napping_.store(true, std::memory_order_relaxed);
}

}  // namespace sterna::runtime
