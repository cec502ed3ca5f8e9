// How the worker that watches the network sleeps: in the hook, or elsewhere while others attend to
// it.
#include <algorithm>

#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {

using SleepState::kInHook, SleepState::kOnFutex;

namespace {

constexpr std::uint64_t kAloneNs = 5'000;
constexpr std::uint64_t kComputesNs = 200'000;
constexpr std::uint32_t kUnyieldingSleeps = 32;

}  // namespace

/// A yield that takes longer gave way to somebody, perhaps to the one that is waited for. Two that
/// yield to each other stay on one processor, though another one may be idle: who sleeps is woken
/// there. So the next few times it sleeps early. Whoever has the processor for as long as a slice
/// computes: there who sleeps gets it at once when something comes, and who yields does not.
void Worker::yield_before_sleep(IdleHook& hook) noexcept {
  const std::uint64_t begin = cycles();
  hook.yield_worker();
  const std::uint64_t took = cycles() - begin;
  if (took > team.to_cycles(kComputesNs)) {
    early_sleeps = kEarlySleeps + kUnyieldingSleeps;
  } else if (took > team.to_cycles(kAloneNs)) {
    early_sleeps = kEarlySleeps;
  }
}

/// sleep_word is kInHook. Elsewhere while kernel threads that are no workers look, or sleep there.
void Worker::sleep_for_network(std::uint64_t deadline_ns, std::uint64_t watch_ns) noexcept {
  IdleHook& hook = *team.options.idle_hook;
  std::uint64_t absence_ns = hook.absence_ns(sleep_word);
  if (absence_ns == 0) {
    const bool has_slept = hook.sleep(deadline_ns, sleep_word, kInHook);
    absence_ns = hook.absence_ns(sleep_word);
    if (absence_ns == 0) {
      if (has_slept) {
        return;  // An event came, or wake(), or the deadline.
      }
      absence_ns = watch_ns;  // Who sleeps there may go away.
    }
  }
  std::uint32_t expected = kInHook;
  if (!sleep_word.compare_exchange_strong(expected, kOnFutex, std::memory_order_seq_cst)) {
    return;
  }
  std::uint64_t now = team.now_ns();
  do {
    futex_wait(sleep_word, kOnFutex, std::min(deadline_ns, now + absence_ns));
    now = team.now_ns();
  } while (sleep_word.load(std::memory_order_relaxed) == kOnFutex && now < deadline_ns &&
           (absence_ns = hook.absence_ns(sleep_word)) != 0);
}

}  // namespace sterna::threads
