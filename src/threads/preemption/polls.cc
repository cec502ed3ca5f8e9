// What a tick does for the network, for policies and for deadlines, while workers compute.
//
// Deadlines: workers fire timers when they switch, search or sleep. While each of them has a thread
// that computes, or sleeps in the kernel, nobody does but a tick: it makes ready who waits, and the
// next tick takes a worker over for it, or preempts. It is this ticker's work, since the lock of
// timers is held while memory is taken, for which the other one must not wait (preempt.h).
// arm() stores Timers::next_ns() relaxed, and nothing orders that before a look here: what one tick
// does not see the next one does, and there is a next one as long as somebody computes. Nor do
// timers matter for the rest of a ticker (ticker.cc): it rests only while nobody computes, and then
// those who search or sleep have the timers. So an armed timer keeps no idle process awake.
#include "threads/worker.h"

namespace sterna::threads {

bool TeamState::wants_ticks() noexcept {
  const std::uint32_t searchers = searcher_count.load(std::memory_order_seq_cst);  // (2) of
  const std::uint32_t sleepers = sleeper_count.load(std::memory_order_seq_cst);    // ticker.cc
  return (options.idle_hook != nullptr && searchers == 0 && sleepers == 0) ||
         (polls_dispatch() && searchers + sleepers < workers.size());
}

/// All workers compute, and the network is to be polled meanwhile.
bool TeamState::leaves_polls() const noexcept {
  return options.idle_hook != nullptr && options.tick_ns != 0 &&
         searcher_count.load(std::memory_order_relaxed) == 0 &&
         sleeper_count.load(std::memory_order_relaxed) == 0;
}

std::uint32_t TeamState::tick(std::uint64_t now_ns) noexcept {
  for (const auto& worker : workers) {
    worker->meter.look();
  }
  if (polls_dispatch()) {
    options.dispatch->poll();  // Workers that compute do not.
  }
  const bool has_fired = fire_timers();
  if ((leaves_polls() && options.idle_hook->poll(SchedulingPoint::tick) != 0) || has_fired) {
    // Relaxed: for when the next tick comes.
    is_talked_to.store(true, std::memory_order_relaxed);
  }
  return preemptor == nullptr ? intervals_to_tick(now_ns) : 1;
}

std::uint32_t TeamState::intervals_to_tick(std::uint64_t now_ns) noexcept {
  const std::uint32_t intervals = crowd.look(now_ns, *this);
  return is_talked_to.exchange(false, std::memory_order_relaxed) ? 1 : intervals;
}

bool TeamState::lead_polls() noexcept {
  const std::uint64_t timer_ns = next_timer_ns();
  const bool is_due = timer_ns != kNever && timer_ns <= now_ns();
  if (is_due || (polls_dispatch() && options.dispatch->wants_polls()) ||
      (leaves_polls() && options.idle_hook->needs_tick())) {
    tickers[1]->lead();
  }
  return is_due;
}

}  // namespace sterna::threads
