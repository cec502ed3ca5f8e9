// See readiness.h.
#include "progress/readiness.h"

#include <cerrno>

#include <sys/epoll.h>

#include "base/check.h"
#include "base/clock.h"
#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::progress {
namespace {

constexpr int kEventsMax = 32;
// A look costs a system call: idle workers, which poll without a pause, look so often at most.
constexpr std::uint64_t kLookNs = 1'500;

}  // namespace

/// On the stack of a thread that waits.
struct Readiness::Waiting {
  Readiness* home = nullptr;
  int descriptor = -1;
  std::uint32_t events = 0;
  bool is_in_list = false;  // Guard of both: the lock of its bucket.
  Waiting* next = nullptr;
  threads::Semaphore ready{0};
};

Result<std::unique_ptr<Readiness>> Readiness::open(Progress& progress) noexcept {
  const long epoll = system_call([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  if (epoll < 0) {
    return system_error("progress: cannot create an epoll descriptor (raise `ulimit -n`?)",
                        static_cast<int>(-epoll));
  }
  std::unique_ptr<Readiness> made{new (std::nothrow)
                                      Readiness{progress, FileDescriptor{static_cast<int>(epoll)}}};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> added = progress.add(*made); !added) {
    return added.error();
  }
  return made;
}

Readiness::~Readiness() {
  check(count_.load(std::memory_order_relaxed) == 0,
        "no thread waits for a descriptor when the runtime ends");
  progress_.remove(*this);
}

/// The lock of the bucket is held: what is armed is what its waiters want.
long Readiness::arm(const Bucket& bucket, int descriptor) noexcept {
  std::uint32_t wanted = 0;
  for (const Waiting* one = bucket.first; one != nullptr; one = one->next) {
    wanted |= one->descriptor == descriptor ? one->events : 0;
  }
  if (wanted == 0) {
    return system_call(
        [&] { return ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); });
  }
  epoll_event event{.events = wanted | EPOLLONESHOT, .data = {.fd = descriptor}};
  const long changed =
      system_call([&] { return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event); });
  if (changed != -ENOENT) {
    return changed;
  }
  return system_call([&] { return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event); });
}

/// It waits no more. False: it had been taken out of the list, since its event has come.
bool Readiness::leave(Waiting& waiting) noexcept {
  Bucket& bucket = bucket_of(waiting.descriptor);
  const KernelGuard guard{bucket.lock};
  if (!waiting.is_in_list) {
    return false;
  }
  Waiting** link = &bucket.first;
  while (*link != &waiting) {
    link = &(*link)->next;
  }
  *link = waiting.next;
  waiting.is_in_list = false;
  count_.fetch_sub(1, std::memory_order_relaxed);
  (void)arm(bucket, waiting.descriptor);  // It may be closed meanwhile.
  return true;
}

Readiness::Outcome Readiness::wait(int descriptor, std::uint32_t events, std::uint64_t deadline_ns,
                                   int& error) noexcept {
  Waiting waiting{.home = this, .descriptor = descriptor, .events = events | EPOLLERR | EPOLLHUP};
  was_used_.store(true, std::memory_order_relaxed);
  {
    Bucket& bucket = bucket_of(descriptor);
    const KernelGuard guard{bucket.lock};
    waiting.next = bucket.first;
    bucket.first = &waiting;
    waiting.is_in_list = true;
    count_.fetch_add(1, std::memory_order_relaxed);
    const long armed = arm(bucket, descriptor);
    if (armed < 0) {
      bucket.first = waiting.next;
      count_.fetch_sub(1, std::memory_order_relaxed);
      error = static_cast<int>(-armed);
      return armed == -EPERM ? Outcome::always : Outcome::failed;
    }
  }
  threads::Cleanup cleanup{[](void* its) {
                             auto& left = *static_cast<Waiting*>(its);
                             (void)left.home->leave(left);
                           },
                           &waiting};
  const threads::Thread* const me = threads::self();
  const bool is_cancellable = me != nullptr && me->is_cancellable;
  if (is_cancellable) {
    threads::push_cleanup(cleanup);
  }
  const bool has_fired = waiting.ready.try_acquire_until(deadline_ns);
  if (is_cancellable) {
    (void)threads::pop_cleanup(false);
  }
  // Also after the event: who fires may be in release() still, under the lock of the bucket.
  return leave(waiting) && !has_fired ? Outcome::timed_out : Outcome::ready;
}

/// Wakes those who wait for one of the events; errors and hang-ups are everybody's.
std::uint32_t Readiness::fire(int descriptor, std::uint32_t events) noexcept {
  Bucket& bucket = bucket_of(descriptor);
  const KernelGuard guard{bucket.lock};
  const std::uint32_t for_all = events & (EPOLLERR | EPOLLHUP);
  std::uint32_t woken = 0;
  bool has_others = false;
  for (Waiting** link = &bucket.first; *link != nullptr;) {
    Waiting& one = **link;
    if (one.descriptor != descriptor || (for_all == 0 && (one.events & events) == 0)) {
      has_others = has_others || one.descriptor == descriptor;
      link = &one.next;
      continue;
    }
    *link = one.next;
    one.is_in_list = false;
    count_.fetch_sub(1, std::memory_order_relaxed);
    one.ready.release();
    ++woken;
  }
  if (has_others) {
    (void)arm(bucket, descriptor);
  }
  return woken;
}

std::uint32_t Readiness::poll() noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  const std::uint64_t now = now_ns();
  if (now - last_look_ns_ < kLookNs) {
    return 0;
  }
  last_look_ns_ = now;
  return look();
}

/// Who has not had a waiter since it opened arms nothing.
bool Readiness::prepare_sleep() noexcept {
  return !was_used_.load(std::memory_order_relaxed) || look() == 0;
}

std::uint32_t Readiness::look() noexcept {
  epoll_event events[kEventsMax];
  const long count = system_call([&] { return ::epoll_wait(epoll_.get(), events, kEventsMax, 0); });
  std::uint32_t woken = 0;
  for (long i = 0; i < count; ++i) {
    woken += fire(events[i].data.fd, events[i].events);
  }
  return woken;
}

}  // namespace sterna::progress
