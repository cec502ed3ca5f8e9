// See measure.h.
#include "threads/control/measure.h"

#include "threads/flags.h"
#include "threads/queues/kept.h"
#include "threads/queues/worker_set.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint32_t kMeasuredFlags = ThreadFlag::accounted | ThreadFlag::measured;

}  // namespace

std::uint64_t measure(Thread& thread) noexcept {
  TeamState& team = *thread.team->state();
  const std::uint64_t now = cycles();
  // Relaxed: who reads an old one ends a measurement that the next look begins anew.
  team.measured_until.store(now + team.to_cycles(kMeasuredForNs), std::memory_order_relaxed);
  // Acquire: who carried the order out made it accounted before. So the word is read first.
  const bool is_ordered = has(thread.hold.load(std::memory_order_acquire), Hold::measured);
  if ((flags_of(thread) & ThreadFlag::accounted) != 0) {
    return processor_ns(thread);
  }
  if (!is_ordered) {
    // Nobody else writes it while it is neither accounted nor to be so.
    thread.cycles_begin.store(now, std::memory_order_relaxed);
    change_hold(thread, [](Hold word) { return word | Hold::measured; });
    return 0;
  }
  const std::uint64_t begin = thread.cycles_begin.load(std::memory_order_relaxed);
  if (!is_running(thread) || begin == 0 || now < begin) {
    return 0;
  }
  return static_cast<std::uint64_t>(static_cast<double>(now - begin) * team.ns_per_cycle);
}

void begin_measuring(Thread& thread) noexcept {
  thread.cycles_run.store(0, std::memory_order_relaxed);
  // Who found nobody to give way to goes on with its turn: no switch will begin one.
  thread.cycles_begin.store(is_leaving(thread) ? cycles() : 0, std::memory_order_relaxed);
  set_flags(thread, thread.flags | kMeasuredFlags);
  // The order last: nobody gives it a second time meanwhile, and writes cycles_begin for that.
  change_hold(thread, [](Hold word) { return without(word, Hold::measured); });
}

void end_measuring_if_over(Thread& thread, std::uint64_t now) noexcept {
  const TeamState& team = *thread.team->state();
  if (now > team.measured_until.load(std::memory_order_relaxed)) {
    thread.cycles_begin.store(0, std::memory_order_relaxed);
    set_flags(thread, thread.flags & ~kMeasuredFlags);
  }
}

}  // namespace sterna::threads
