// What a tick does for the network and for policies, while workers compute.
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
  if (leaves_polls() && options.idle_hook->poll(SchedulingPoint::tick) != 0) {
    // Relaxed: for when the next tick comes.
    is_talked_to.store(true, std::memory_order_relaxed);
  }
  return preemptor == nullptr ? intervals_to_tick(now_ns) : 1;
}

std::uint32_t TeamState::intervals_to_tick(std::uint64_t now_ns) noexcept {
  const std::uint32_t intervals = crowd.look(now_ns, *this);
  return is_talked_to.exchange(false, std::memory_order_relaxed) ? 1 : intervals;
}

void TeamState::lead_polls() noexcept {
  if (tickers[1] != nullptr && ((polls_dispatch() && options.dispatch->wants_polls()) ||
                                (leaves_polls() && options.idle_hook->needs_tick()))) {
    tickers[1]->lead();
  }
}

}  // namespace sterna::threads
