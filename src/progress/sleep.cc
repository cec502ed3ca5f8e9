// The kernel sleep, its wake-up, and what both cost.
//
// A sleep loses no event: prepare_sleep() of each source promises that from then on an event makes
// its descriptor readable, also one that came just before; wake() writes to an eventfd that is
// in the same epoll set and stays readable until a sleeper has taken it.
#include <algorithm>
#include <cerrno>
#include <ctime>

#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "progress/impl.h"
#include "progress/progress.h"
#include "threads/wait/futex.h"
#include "threads/waiter.h"

namespace sterna::progress {
namespace {

// A sleep is never taken to cost more than so many times what it was at first.
constexpr std::uint64_t kDearest = 5;

}  // namespace

bool Progress::Impl::prepare_all() noexcept {
  take_added();
  for (Source* const source : sources) {
    if (!source->prepare_sleep()) {
      end_all();
      return false;
    }
    prepared.push_back(source);
  }
  return true;
}

void Progress::Impl::end_all() noexcept {
  for (Source* const source : prepared) {
    source->end_sleep();
  }
  prepared.clear();
}

/// Whether a source has ended it.
bool Progress::Impl::sleep_in_epoll(std::uint64_t deadline_ns, std::uint64_t now) noexcept {
  timespec timeout{};
  if (deadline_ns != kNever) {
    const std::uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    timeout = {.tv_sec = static_cast<time_t>(left / 1'000'000'000),
               .tv_nsec = static_cast<long>(left % 1'000'000'000)};
  }
  epoll_event arrived[8];
  const timespec* const limit = deadline_ns != kNever ? &timeout : nullptr;
  long count = raw_system_call(SYS_epoll_pwait2, epoll.get(), reinterpret_cast<long>(arrived), 8,
                               reinterpret_cast<long>(limit), 0, 0);
  if (count == -ENOSYS) {  // Before Linux 5.11: milliseconds, rounded up.
    const int timeout_ms =
        limit == nullptr
            ? -1
            : static_cast<int>(std::min<std::uint64_t>(
                  timeout.tv_sec * 1000 + (timeout.tv_nsec + 999'999) / 1'000'000, 1 << 30));
    count = raw_system_call(SYS_epoll_pwait, epoll.get(), reinterpret_cast<long>(arrived), 8,
                            timeout_ms, 0, 0);
  }
  bool has_come = false;
  for (long i = 0; i < count; ++i) {
    if (arrived[i].data.fd == event.get()) {
      std::uint64_t ignored = 0;
      raw_system_call(SYS_read, event.get(), reinterpret_cast<long>(&ignored), sizeof ignored);
    } else {
      has_come = true;
    }
  }
  return has_come;
}

void Progress::Impl::wake_aside() noexcept {
  const std::atomic<std::uint32_t>* word = nullptr;
  if (const SpinGuard guard{aside_lock}; !aside.empty()) {
    threads::leave_sleep(*aside.front());  // Its word first: it may be about to fall asleep.
    word = &aside.front()->word;
  }
  if (word != nullptr) {
    threads::futex_wake(word, 1);  // Without the lock: who is gone by now needs it no more.
  }
}

/// By the sleeper. Who is woken by a peer knows what it cost: to fall asleep, and from the ring to
/// here. It is paid twice, by who sleeps and by who waits for its answer.
void Progress::Impl::learn_price(std::uint64_t cost_ns) noexcept {
  if (price_ns == 0) {
    return;
  }
  const std::uint64_t most = kDearest * price_ns;
  sleep_cost_ns = (7 * sleep_cost_ns + std::min(cost_ns, most)) / 8;
  const std::uint64_t price = std::clamp(2 * sleep_cost_ns, price_ns, most);
  const std::uint64_t now = polling.price();
  if (4 * price > 5 * now || 5 * price < 4 * now) {
    polling.change_price(price);
  }
}

/// Who finds another one asleep sleeps elsewhere: the sleeper has rung before its request. Whoever
/// has the turn gives it back soon; a caller that need not sleep any more does not wait for that.
void Progress::Impl::wake_absent_beside(const std::atomic<std::uint32_t>& word,
                                        std::uint32_t expected) noexcept {
  while (word.load(std::memory_order_seq_cst) == expected) {
    if (try_take()) {
      (void)wake_absent(true);
      give_back();
      return;
    }
    raw_system_call(SYS_sched_yield);
  }
}

/// By the sleeper, whose sources are prepared.
void Progress::Impl::sleep_prepared(std::uint64_t deadline_ns, std::uint64_t begin_ns,
                                    bool is_worker) noexcept {
  sleeps.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t asleep_ns = now_ns();
  const std::uint64_t events_before = events.load(std::memory_order_relaxed);
  bool has_come = false;
  {
    const OneCaller::Away away{caller};
    has_come = sleep_in_epoll(deadline_ns, asleep_ns);
  }
  const bool is_taken = standby.is_looked_after() ||
                        events.load(std::memory_order_relaxed) != events_before;
  take();
  std::uint64_t rung_ns = 0;
  for (Source* const source : prepared) {
    rung_ns = std::max(rung_ns, source->rung_ns());
  }
  end_all();
  give_back();
  const std::uint64_t end_ns = now_ns();
  if (rung_ns >= asleep_ns && rung_ns <= end_ns) {
    learn_price(asleep_ns - begin_ns + end_ns - rung_ns);
  }
  if (is_worker && has_come) {
    is_taken ? standby.was_woken_in_vain(end_ns) : standby.was_needed();
  }
}

std::uint64_t Progress::absence_ns(const std::atomic<std::uint32_t>& word) noexcept {
  return impl_->standby.absence_ns(word, now_ns());
}

void Progress::note_work() noexcept {
  impl_->standby.note_work();
  impl_->retreat.note_work();
}

void Progress::gave_work() noexcept {
  impl_->retreat.note_work();
}

bool Progress::sleep(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
                     std::uint32_t expected) noexcept {
  return sleep_here(deadline_ns, word, expected, true);
}

bool Progress::sleep_here(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
                          std::uint32_t expected, bool is_worker) noexcept {
  Impl& impl = *impl_;
  if (impl.has_sleeper.exchange(true, std::memory_order_seq_cst)) {
    impl.wake_absent_beside(word, expected);
    if (is_worker) {
      impl.standby.found_a_sleeper(now_ns(), impl.sleeps.load(std::memory_order_relaxed));
    }
    return false;
  }
  bool is_prepared = false;
  const std::uint64_t begin_ns = now_ns();
  // The word is read when nobody else takes from the eventfd: a waker that changes it later writes
  // there later, for us. One that changed it before may have woken the sleeper before us instead.
  if (word.load(std::memory_order_seq_cst) == expected && impl.try_take()) {
    // Against wake_for_source(): the sources may answer from what they read without any order.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    is_prepared = impl.prepare_all();
    for (Source* const source : impl.prepared) {
      deadline_ns = std::min(deadline_ns, source->next_deadline_ns());
    }
    if (is_prepared) {
      (void)impl.wake_absent(true);  // Later it asks nobody, but see give_back_after().
    }
    impl.give_back();
  }
  if (is_prepared) {
    impl.sleep_prepared(deadline_ns, begin_ns, is_worker);
  }
  // Sequentially consistent, against one that saw a sleeper, joins `aside` and looks again.
  impl.has_sleeper.store(false, std::memory_order_seq_cst);
  impl.wake_aside();
  return true;
}

void Progress::wake() noexcept {
  const std::uint64_t one = 1;
  raw_system_call(SYS_write, impl_->event.get(), reinterpret_cast<long>(&one), sizeof one);
  impl_->has_rung.store(true, std::memory_order_relaxed);  // After: who sees it can read.
}

void Progress::wake_for_source() noexcept {
  // The sleeper sets has_sleeper, then asks the sources; the caller has changed its source, and
  // looks here. In the one order of the two exchanges either the source says no, or we see
  // the sleeper.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (impl_->has_sleeper.load(std::memory_order_seq_cst)) {
    wake();
  }
}

}  // namespace sterna::progress
