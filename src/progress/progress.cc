// The poller's turn, and its rounds.
#include "progress/progress.h"

#include <algorithm>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/check.h"
#include "progress/impl.h"
#include "threads/observation/traced.h"

namespace sterna::progress {

namespace {

// What a yield is taken to cost who yields: a system call, a switch, and the look afterwards.
constexpr std::uint64_t kYieldNs = 1000;
// After a round in vain, of who has nothing else to do: about as long as another round...
constexpr std::uint32_t kLooks = 4;
// ...and longer where events come all the time: what comes during a round is found late.
constexpr std::uint32_t kLooksWhereBusy = 32;
constexpr std::uint32_t kRoundsOfBusy = 64;  // In vain, since the last event.

}  // namespace

std::uint32_t Progress::Impl::poll_all(threads::SchedulingPoint at) noexcept {
  point = at;
  take_added();
  std::uint32_t count = 0;
  for (Source* const source : sources) {
    if (const std::uint32_t of_source = source->poll(); of_source != 0) {
      busy.had(*source);
      count += of_source;
    }
  }
  add_relaxed(polls, 1);
  if (count != 0) {
    add_relaxed(events, count);
    rounds_in_vain = 0;
  }
  return count;
}

/// Where the last event came from the next one is likely to come from.
std::uint32_t Progress::Impl::poll_if_seen(std::uint32_t looks) noexcept {
  Source* const busiest = busy.last();
  if (busiest == nullptr) {
    return 0;
  }
  const bool is_busy = ++rounds_in_vain < kRoundsOfBusy;
  if (!busiest->sight(is_busy ? std::max(looks, kLooksWhereBusy) : looks)) {
    return 0;
  }
  const std::uint32_t count = busiest->poll();
  add_relaxed(events, count);
  rounds_in_vain = 0;
  return count;
}

Progress::Progress(const ProgressOptions& options, std::unique_ptr<Impl> impl) noexcept
    : options_{options}, impl_{std::move(impl)} {}

Progress::~Progress() {
  check(impl_->sources.empty() && impl_->added.empty(),
        "all sources are removed before progress ends");
}

Result<std::unique_ptr<Progress>> Progress::open(const ProgressOptions& options) {
  auto impl = std::make_unique<Impl>();
  const std::uint64_t price_ns = std::min(options.spin_ns, SpinBudget::kPriceMax);
  impl->polling.open(price_ns);
  impl->price_ns = price_ns;
  impl->sleep_cost_ns = price_ns / 2;
  impl->yielding.open((price_ns + kYieldNs - 1) / kYieldNs);
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

bool Progress::serves_one_caller() const noexcept {
  return impl_->is_serial;
}

void Progress::give_way_for(OneCaller& caller) noexcept {
  impl_->caller = &caller;
}

bool Progress::try_take_turn() noexcept {
  return impl_->try_take();
}

void Progress::give_turn() noexcept {
  impl_->give_back();
}

std::uint32_t Progress::poll_in_turn() noexcept {
  Impl& impl = *impl_;
  impl.give_way();
  impl.take();
  const std::uint32_t count = impl.poll_all(threads::SchedulingPoint::forced);
  impl.give_back_after(count);
  return count;
}

std::uint32_t Progress::poll(threads::SchedulingPoint point) noexcept {
  const bool is_idle = point == threads::SchedulingPoint::idle && !options_.is_oversubscribed;
  return poll_once(point, is_idle ? kLooks : 0);
}

std::uint32_t Progress::poll_and_look() noexcept {
  return poll_once(threads::SchedulingPoint::enter, options_.is_oversubscribed ? 0 : kLooks);
}

std::uint32_t Progress::poll_once(threads::SchedulingPoint point, std::uint32_t looks) noexcept {
  Impl& impl = *impl_;
  impl.give_way();
  std::uint64_t now = 0;
  if (point == threads::SchedulingPoint::tick) {
    return poll_at_tick();
  }
  // By whoever comes first, also by who handed over and now waits.
  hand_over().take();
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
  std::uint32_t count = impl.poll_all(point);
  if (count == 0 && looks != 0) {
    count = impl.poll_if_seen(looks);
  }
  impl.give_back_after(count);
  if (count != 0) {
    threads::trace_event(trace::Kind::polled, trace::kNobody, count);
  }
  return count;
}

/// Not for a worker that computes (its caches) nor a signal handler (locks): a poll in another
/// kernel thread, as rare and as short as it can be.
std::uint32_t Progress::poll_at_tick() noexcept {
  Impl& impl = *impl_;
  if (!needs_tick() || !impl.try_take()) {
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
  impl.polls_at_tick.store(impl.polls.load(std::memory_order_relaxed), std::memory_order_relaxed);
  impl.give_back_after(count);
  return count;
}

bool Progress::needs_tick() noexcept {
  Impl& impl = *impl_;
  // Relaxed: numbers for a decision that may be wrong; who sleeps is woken by what comes.
  const std::uint64_t polls = impl.polls.load(std::memory_order_relaxed);
  return impl.polls_at_tick.exchange(polls, std::memory_order_relaxed) == polls &&
         !impl.has_sleeper.load(std::memory_order_relaxed);
}

std::uint64_t Progress::now_here() const noexcept {
  return options_.clock != nullptr ? options_.clock->now_ns() : now_ns();
}

std::uint64_t Progress::sleep_price_ns() const noexcept {
  return impl_->polling.price();
}

SpinBudget& Progress::yields() noexcept {
  return impl_->yielding;
}

std::uint64_t Progress::last_poll_ns() const noexcept {
  return impl_->last_poll_ns.load(std::memory_order_relaxed);
}

ProgressCounters Progress::counters() const noexcept {
  constexpr auto read = [](const auto& its) { return its.load(std::memory_order_relaxed); };
  return {.polls = read(impl_->polls),
          .declined = read(impl_->declined),
          .ticks = read(impl_->ticks),
          .events = read(impl_->events),
          .sleeps = read(impl_->sleeps),
          .naps = read(impl_->naps),
          .polls_for_ns = impl_->polling.learnt(),
          .yields_for = impl_->yielding.learnt(),
          .expected_until_ns = read(impl_->expected_until_ns)};
}

}  // namespace sterna::progress
