// See turn_meter.h.
#include "threads/control/turn_meter.h"

#include <algorithm>

namespace sterna::threads {
namespace {

constexpr std::uint64_t kRowsRemembered = 256;

[[nodiscard]] bool is_accounted(const Thread& thread) noexcept {
  return (thread.flags & ThreadFlag::accounted) != 0;
}

void charge(Thread& thread, std::uint64_t cycles) noexcept {
  // Relaxed: for readers that want a number; before cycles_begin, so that time is not lost to them.
  thread.cycles_run.store(thread.cycles_run.load(std::memory_order_relaxed) + cycles,
                          std::memory_order_relaxed);
}

void set_begin(Thread& thread, std::uint64_t cycles) noexcept {
  thread.cycles_begin.store(cycles, std::memory_order_release);
}

}  // namespace

void TurnMeter::guess(Thread& thread, std::uint64_t cycles, std::uint64_t now) noexcept {
  charge(thread, cycles);
  exact_until_ = std::max(exact_until_, now + kExactRatio * cycles);
}

// Charges the row and the turn after it, which took `cycles`. By what the rows before had to be
// corrected: this one must not make itself count less.
void TurnMeter::charge_row(Thread& thread, std::uint64_t cycles) noexcept {
  const std::uint64_t estimated = (std::uint64_t{row_length_} + 1) * cycles;
  charge(thread, estimated_cycles_ == 0 ? estimated : estimated * true_cycles_ / estimated_cycles_);
  true_cycles_ += row_cycles_ + cycles - true_cycles_ / kRowsRemembered;
  estimated_cycles_ += estimated - estimated_cycles_ / kRowsRemembered;
}

void TurnMeter::begin_row(std::uint64_t now, std::uint32_t length_max) noexcept {
  random_ ^= random_ << 13;  // Xorshift.
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  row_length_ = static_cast<std::uint32_t>(random_ >> 32) % length_max + 1;
  row_begin_.store(now, std::memory_order_relaxed);
  left_.store(row_length_ - 1, std::memory_order_relaxed);
}

void TurnMeter::end(Thread& thread, std::uint64_t now) noexcept {
  const std::uint64_t begin = thread.cycles_begin.load(std::memory_order_relaxed);
  const std::uint64_t row_begin = row_begin_.load(std::memory_order_relaxed);
  if (begin != 0) {
    charge_turn(thread, now - begin, now);
  } else if (row_begin != 0) {
    guess(thread, now - row_begin, now);
  }
  set_begin(thread, 0);
  forget_row();
}

// A turn that was timed, and the row before it.
void TurnMeter::charge_turn(Thread& thread, std::uint64_t cycles, std::uint64_t now) noexcept {
  if (cycles > short_cycles_) {
    charge(thread, cycles);
    guess(thread, row_cycles_, now);
    short_count_ = 0;
  } else {
    if (row_cycles_ != 0) {
      charge_row(thread, cycles);
    } else {
      charge(thread, cycles);
    }
    short_count_ = std::min(short_count_ + 1, kShortMin);
  }
  row_cycles_ = 0;
}

// What was in it is charged, or belongs to threads that are not accounted.
void TurnMeter::forget_row() noexcept {
  left_.store(0, std::memory_order_relaxed);
  row_begin_.store(0, std::memory_order_relaxed);
  row_cycles_ = 0;
}

void TurnMeter::change(Thread& from, Thread& to, std::uint64_t now) noexcept {
  if (is_accounted(from)) {
    end(from, now);
  } else {
    forget_row();
  }
  if (is_accounted(to)) {
    set_begin(to, now);
  }
}

// The row is over, or somebody looked.
void TurnMeter::end_row(Thread& thread, std::uint64_t now) noexcept {
  const std::uint64_t begin = row_begin_.load(std::memory_order_relaxed);
  const std::uint64_t cycles = begin != 0 ? now - begin : 0;
  row_begin_.store(0, std::memory_order_relaxed);
  if (cycles > row_cycles_max()) {
    guess(thread, cycles, now);
    short_count_ = 0;
  } else {
    row_cycles_ = cycles;
  }
}

void TurnMeter::pass(Thread& from, Thread& to, std::uint64_t now,
                     std::uint32_t direct_left) noexcept {
  if (!is_accounted(from) || !is_accounted(to)) {
    change(from, to, now);
    return;
  }
  const std::uint64_t begin = from.cycles_begin.load(std::memory_order_relaxed);
  if (begin == 0) {
    end_row(from, now);
    set_begin(to, now);
    return;
  }
  charge_turn(from, now - begin, now);
  set_begin(from, 0);
  // With the turn that pays for it. Even: see turn_meter.h.
  const std::uint32_t length_max =
      std::min(kRowMax, direct_left != 0 ? direct_left - 1 : 0) & ~std::uint32_t{1};
  if (short_count_ < kShortMin || now < exact_until_ || length_max == 0) {
    set_begin(to, now);
  } else {
    begin_row(now, length_max);
  }
}

}  // namespace sterna::threads
