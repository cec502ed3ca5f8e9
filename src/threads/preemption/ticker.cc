// The thread that ticks, and how it goes to rest.
//
// No wish is lost. The ticker stores kResting (1) and then asks its clients (2); who makes a client
// want ticks does that first (3) and then reads the word (4), in kick(). All four are sequentially
// consistent: either 3 comes before 2, and the ticker does not rest, or 1 before 4, and the kick
// finds it at rest. Model: ticker_model_test.cc.
#include "threads/preemption/ticker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/syscall.h"
#include "threads/carriers/kernel_thread.h"
#include "threads/observation/crash.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

// So many ticks that nobody wants, one after the other, before it rests: who sleeps and works in
// turn, as ranks that talk do, kicks it this rarely.
constexpr std::uint32_t kIdleTicks = 8;
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

}  // namespace

Ticker::Ticker(const TickerOptions& options) noexcept
    : interval_ns_{options.interval_ns},
      early_ns_{options.early_ns},
      clients_{options.clients.begin(), options.clients.end()},
      word_{options.interval_ns != 0 ? kTicking : kResting} {}

Result<> Ticker::start() noexcept {
  const int error = start_kernel_thread(thread_, {.stack_bytes = kStackBytes,
                                                  .main = thread_main,
                                                  .argument = this,
                                                  .signals = Signals::faults});
  if (error != 0) {
    return system_error(
        "threads: cannot start the ticker (raise the limit of processes, `ulimit -u`, or set "
        "tick=0)",
        error);
  }
  has_thread_ = true;
  return Done{};
}

Ticker::~Ticker() {
  finish();
}

void Ticker::finish() noexcept {
  stop();
  if (std::exchange(has_thread_, false)) {
    (void)pthread_join(thread_, nullptr);
  }
}

void* Ticker::thread_main(void* ticker) noexcept {
  void* const signal_stack = use_signal_stack();
  auto& its = *static_cast<Ticker*>(ticker);
  // For who asks, with top -H, what runs beside the program's own.
  const char* const name = its.interval_ns_ != 0 ? "sterna-tick" : "sterna-poll";
  raw_system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name));
  its.interval_ns_ != 0 ? its.run() : its.run_led();
  drop_signal_stack(signal_stack);
  return nullptr;
}

void Ticker::run() noexcept {
  if (early_ns_ != 0) {
    raw_system_call(SYS_prctl, PR_SET_TIMERSLACK, static_cast<long>(early_ns_));
  }
  std::uint32_t idle_ticks = 0;
  std::uint32_t intervals = 1;
  for (;;) {
    const std::uint64_t end_ns = now_ns() + interval_ns_ * intervals - early_ns_;
    do {
      futex_wait(word_, kTicking, end_ns);
      if (word_.load(std::memory_order_relaxed) == kStopped) {  // Orders nothing: see stop().
        return;
      }
    } while (now_ns() < end_ns);
    intervals = 1;
    if (any_wants_ticks()) {
      idle_ticks = 0;
      intervals = tick_all(end_ns);
    } else if (++idle_ticks == kIdleTicks) {
      idle_ticks = 0;
      rest();
    }
  }
}

void Ticker::run_led() noexcept {
  for (;;) {
    futex_wait(word_, kResting, kNever);
    std::uint32_t led = kTicking;
    // Before the tick: who leads meanwhile gets another one. Acquire: what made it lead.
    if (word_.compare_exchange_strong(led, kResting, std::memory_order_acquire)) {
      (void)tick_all(now_ns());
    } else if (led == kStopped) {
      return;
    }
  }
}

std::uint32_t Ticker::tick_all(std::uint64_t time_ns) noexcept {
  std::uint32_t intervals = std::numeric_limits<std::uint32_t>::max();
  for (TickClient* const client : clients_) {
    intervals = std::min(intervals, client->tick(time_ns));
  }
  return intervals;
}

void Ticker::rest() noexcept {
  std::uint32_t expected = kTicking;
  if (!word_.compare_exchange_strong(expected, kResting, std::memory_order_seq_cst)) {  // (1)
    return;                                                                             // Stopped.
  }
  if (any_wants_ticks()) {  // (2)
    expected = kResting;
    (void)word_.compare_exchange_strong(expected, kTicking, std::memory_order_seq_cst);
    return;
  }
  while (word_.load(std::memory_order_seq_cst) == kResting) {
    futex_wait(word_, kResting, kNever);
  }
}

bool Ticker::any_wants_ticks() noexcept {
  for (TickClient* const client : clients_) {
    if (client->wants_ticks()) {
      return true;
    }
  }
  return false;
}

void Ticker::wake() noexcept {
  std::uint32_t expected = kResting;
  if (word_.compare_exchange_strong(expected, kTicking, std::memory_order_seq_cst)) {
    futex_wake(&word_, 1);
  }
}

void Ticker::stop() noexcept {
  // The thread takes nothing from who stops it; whoever needs its end joins it.
  word_.store(kStopped, std::memory_order_seq_cst);
  futex_wake(&word_, 1);
}

}  // namespace sterna::threads
