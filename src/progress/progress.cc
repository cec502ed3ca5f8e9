// The poller's turn, the kernel sleep and its wake-up.
//
// A sleep loses no event: prepare_sleep() of each source promises that from then on an event makes
// its descriptor readable, also one that came just before; wake() writes to an eventfd that is
// in the same epoll set and stays readable until a sleeper has taken it.
#include "progress/progress.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cpu.h"
#include "progress/completion.h"
#include "progress/impl.h"
#include "threads/futex.h"
#include "threads/traced.h"
#include "threads/waiter.h"

namespace sterna::progress {

namespace {

constexpr std::uint32_t kSpinTurns = 32;
constexpr std::uint32_t kRoundsOfTurn = 8;

void add_relaxed(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
  // One writer at a time (the poller): no read-modify-write.
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

std::uint32_t Progress::Impl::poll_all(threads::SchedulingPoint at) noexcept {
  point = at;
  std::uint32_t count = 0;
  for (Source* const source : sources) {
    if (const std::uint32_t of_source = source->poll(); of_source != 0) {
      busiest = source;
      count += of_source;
    }
  }
  add_relaxed(polls, 1);
  if (count != 0) {
    add_relaxed(events, count);
  }
  return count;
}

Progress::Progress(const ProgressOptions& options, std::unique_ptr<Impl> impl) noexcept
    : options_{options}, impl_{std::move(impl)} {}

Progress::~Progress() {
  check(impl_->sources.empty(), "all sources are removed before progress ends");
}

Result<std::unique_ptr<Progress>> Progress::open(const ProgressOptions& options) {
  auto impl = std::make_unique<Impl>();
  const long epoll = system_call([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  if (epoll < 0) {
    return system_error("progress: cannot create an epoll descriptor (raise `ulimit -n`?)",
                        static_cast<int>(-epoll));
  }
  impl->epoll = FileDescriptor{static_cast<int>(epoll)};
  const long event = system_call([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (event < 0) {
    return system_error("progress: cannot create an event descriptor (raise `ulimit -n`?)",
                        static_cast<int>(-event));
  }
  impl->event = FileDescriptor{static_cast<int>(event)};
  epoll_event wanted{.events = EPOLLIN, .data = {.fd = impl->event.get()}};
  const long added = system_call(
      [&] { return ::epoll_ctl(impl->epoll.get(), EPOLL_CTL_ADD, impl->event.get(), &wanted); });
  if (added < 0) {
    return system_error("progress: cannot watch the event descriptor", static_cast<int>(-added));
  }
  return std::unique_ptr<Progress>{new Progress{options, std::move(impl)}};
}

void Progress::serve_one_caller(bool is_one) noexcept {
  check(!impl_->is_polled.load(std::memory_order_relaxed), "nobody polls when the callers change");
  impl_->is_serial = is_one;
}

Result<> Progress::add(Source& source) noexcept {
  if (const int fd = source.fd(); fd >= 0) {
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
    const long added =
        system_call([&] { return ::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_ADD, fd, &wanted); });
    if (added < 0) {
      return system_error("progress: cannot watch the descriptor of a source",
                          static_cast<int>(-added));
    }
  }
  impl_->take();
  impl_->sources.push_back(&source);
  impl_->give_back();
  wake();  // Who sleeps now did not prepare this source.
  return Done{};
}

void Progress::remove(Source& source) noexcept {
  impl_->take();
  const auto place = std::find(impl_->sources.begin(), impl_->sources.end(), &source);
  check(place != impl_->sources.end(), "a source is removed once, after it was added");
  impl_->sources.erase(place);
  if (impl_->busiest == &source) {
    impl_->busiest = nullptr;
  }
  if (std::erase(impl_->prepared, &source) != 0) {
    source.end_sleep();
  }
  const int fd = source.fd();
  impl_->give_back();
  if (fd >= 0) {
    // It may be closed already, which removes it too.
    (void)system_call([&] { return ::epoll_ctl(impl_->epoll.get(), EPOLL_CTL_DEL, fd, nullptr); });
  }
}

std::uint32_t Progress::poll(threads::SchedulingPoint point) noexcept {
  Impl& impl = *impl_;
  std::uint64_t now = 0;
  if (point == threads::SchedulingPoint::tick) {
    return poll_at_tick();
  }
  if (point == threads::SchedulingPoint::switching) {
    now = now_here();
    // Relaxed: a time for a decision that may be wrong.
    if (now - impl.last_poll_ns.load(std::memory_order_relaxed) < options_.switch_budget_ns) {
      return 0;
    }
  }
  if (!impl.try_take()) {
    impl.declined.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  if (point == threads::SchedulingPoint::switching) {
    impl.last_poll_ns.store(now, std::memory_order_relaxed);
  } else if ((impl.polls.load(std::memory_order_relaxed) & 31) == 0) {
    // The clock costs as much as a poll: when polls come often, the time need not be exact.
    impl.last_poll_ns.store(now_here(), std::memory_order_relaxed);
  }
  const std::uint32_t count = impl.poll_all(point);
  impl.give_back();
  if (count != 0) {
    threads::trace_event(trace::Kind::polled, trace::kNobody, count);
  }
  return count;
}

/// Not for a worker that computes (its caches) nor a signal handler (locks): a poll in another
/// kernel thread, as rare and as short as it can be.
std::uint32_t Progress::poll_at_tick() noexcept {
  Impl& impl = *impl_;
  // Relaxed: numbers for a decision that may be wrong; who sleeps is woken by what comes.
  const std::uint64_t polls = impl.polls.load(std::memory_order_relaxed);
  if (polls != impl.polls_at_tick || impl.has_sleeper.load(std::memory_order_relaxed) ||
      !impl.try_take()) {
    impl.polls_at_tick = polls;
    return 0;
  }
  if (!impl.prepared.empty()) {  // Somebody has fallen asleep just now.
    impl.give_back();
    return 0;
  }
  // As after a sleep: a source that looks at every n-th round only looks now.
  if (impl.prepare_all()) {
    impl.end_all();
  }
  const std::uint64_t begin = now_here();
  std::uint64_t now = begin;
  std::uint32_t count = 0;
  do {
    const std::uint32_t more = impl.poll_all(threads::SchedulingPoint::tick);
    count += more;
    now = now_here();
    if (more == 0) {
      break;
    }
  } while (now - begin < options_.tick_budget_ns);
  impl.last_poll_ns.store(now, std::memory_order_relaxed);
  add_relaxed(impl.ticks, 1);
  impl.polls_at_tick = impl.polls.load(std::memory_order_relaxed);
  impl.give_back();
  return count;
}

std::uint64_t Progress::now_here() const noexcept {
  return options_.clock != nullptr ? options_.clock->now_ns() : now_ns();
}

bool Progress::Impl::prepare_all() noexcept {
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

void Progress::Impl::sleep_in_epoll(std::uint64_t deadline_ns, std::uint64_t now) noexcept {
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
  for (long i = 0; i < count; ++i) {
    if (arrived[i].data.fd == event.get()) {
      std::uint64_t ignored = 0;
      raw_system_call(SYS_read, event.get(), reinterpret_cast<long>(&ignored), sizeof ignored);
    }
  }
}

void Progress::Impl::wake_aside() noexcept {
  const SpinGuard guard{aside_lock};
  if (!aside.empty()) {
    // Its word first: it may be about to fall asleep.
    threads::leave_sleep(*aside.front());
    threads::futex_wake(&aside.front()->word, 1);
  }
}

bool Progress::sleep(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
                     std::uint32_t expected) noexcept {
  Impl& impl = *impl_;
  if (impl.has_sleeper.exchange(true, std::memory_order_seq_cst)) {
    return false;
  }
  bool is_prepared = false;
  // The word is read when nobody else takes from the eventfd: a waker that changes it later writes
  // there later, for us. One that changed it before may have woken the sleeper before us instead.
  if (word.load(std::memory_order_seq_cst) == expected && impl.try_take()) {
    is_prepared = impl.prepare_all();
    for (Source* const source : impl.prepared) {
      deadline_ns = std::min(deadline_ns, source->next_deadline_ns());
    }
    impl.give_back();
  }
  if (is_prepared) {
    impl.sleeps.fetch_add(1, std::memory_order_relaxed);
    impl.sleep_in_epoll(deadline_ns, now_ns());
    impl.take();
    impl.end_all();
    impl.give_back();
  }
  // Sequentially consistent, against one that saw a sleeper, joins `aside` and looks again.
  impl.has_sleeper.store(false, std::memory_order_seq_cst);
  impl.wake_aside();
  return true;
}

void Progress::wake() noexcept {
  const std::uint64_t one = 1;
  raw_system_call(SYS_write, impl_->event.get(), reinterpret_cast<long>(&one), sizeof one);
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

void Progress::sleep_beside(threads::KernelWaiter& waiter, std::uint64_t deadline_ns) noexcept {
  Impl& impl = *impl_;
  {
    const SpinGuard guard{impl.aside_lock};
    impl.aside.push_back(&waiter);
  }
  // The word says "asleep" before we look for the sleeper, who takes his leave before he looks at
  // our word: either we see that he has gone, or he ends our sleep.
  if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kOnFutex)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (impl.has_sleeper.load(std::memory_order_seq_cst)) {
      threads::futex_wait(waiter.word, threads::KernelWaiter::kOnFutex, deadline_ns);
    }
  }
  threads::leave_sleep(waiter);
  {
    const SpinGuard guard{impl.aside_lock};
    std::erase(impl.aside, &waiter);
  }
}

bool Progress::spin_until(const Completion& completion) noexcept {
  if (options_.is_oversubscribed) {
    return false;
  }
  // A few microseconds. With a pause messages come a fifth sooner: it leaves the core to its other
  // half, and spares the loads that would be in vain when what is waited for comes.
  for (std::uint32_t turn = 0; turn < kSpinTurns && !completion.done(); ++turn) {
    if (!impl_->try_take()) {
      cpu_pause();
      continue;
    }
    // To take and give the turn each time costs as much as the look itself, and to ask all sources
    // several times as much: the answer is likely to come where the last event came from.
    (void)impl_->poll_all(threads::SchedulingPoint::idle);
    Source* const busiest = impl_->busiest;
    for (std::uint32_t round = 0; busiest != nullptr && round < kRoundsOfTurn && !completion.done();
         ++round) {
      const std::uint32_t count = busiest->poll();
      count != 0 ? add_relaxed(impl_->events, count) : cpu_pause();
    }
    impl_->give_back();
  }
  return completion.done();
}

threads::Wake Progress::await_signal(threads::KernelWaiter& waiter,
                                     std::uint64_t deadline_ns) noexcept {
  std::uint64_t begin = 0;
  bool was_beside = false;
  // Who may have been woken to sleep for the network passes that on, also if its event came since.
  const auto leave = [&](threads::Wake wake) {
    const bool is_turn_free = was_beside && !impl_->has_sleeper.load();
    return is_turn_free ? (impl_->wake_aside(), wake) : wake;
  };
  for (std::uint32_t round = 0;; ++round) {
    const std::uint32_t events = poll(threads::SchedulingPoint::idle);
    if (threads::try_take_signal(waiter)) {
      return leave(threads::Wake::signalled);
    }
    if (!options_.is_oversubscribed && (round & 15) != 0) {
      cpu_pause();
      continue;  // The clock costs as much as a poll.
    }
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return leave(threads::Wake::timed_out);
    }
    if (events != 0 || begin == 0) {
      begin = now;
    }
    if (now - begin < options_.spin_ns) {
      if (options_.is_oversubscribed) {
        raw_system_call(SYS_sched_yield);
      }
      continue;
    }
    if (threads::try_enter_sleep(waiter, threads::KernelWaiter::kInHook)) {
      const bool has_slept = sleep(deadline_ns, waiter.word, threads::KernelWaiter::kInHook);
      threads::leave_sleep(waiter);
      if (!has_slept) {
        sleep_beside(waiter, deadline_ns);
        was_beside = true;
      }
    }
  }
}

std::uint64_t Progress::last_poll_ns() const noexcept {
  return impl_->last_poll_ns.load(std::memory_order_relaxed);
}

ProgressCounters Progress::counters() const noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.polls = read(impl_->polls),
          .declined = read(impl_->declined),
          .ticks = read(impl_->ticks),
          .events = read(impl_->events),
          .sleeps = read(impl_->sleeps)};
}

}  // namespace sterna::progress
