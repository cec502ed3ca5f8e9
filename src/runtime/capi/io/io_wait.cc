// io.h: connections, waiting for several descriptors, sleeping.
#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include <fcntl.h>
#include <sterna/io.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/capi/io/io_call.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/control/cancel.h"
#include "threads/sync/semaphore.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::system_call;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::uint64_t kNsOfSecond = 1'000'000'000;
constexpr std::uint64_t kNsOfMs = 1'000'000;
constexpr std::uint64_t kLeftOutNs = 10'000'000;  // Of select(): see leave_out().

bool is_ready(int fd, short events) noexcept {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  return system_call([&] { return ::poll(&one, 1, 0); }) > 0;
}

/// The outcome of a connection that has come about, or has not.
long result_of_connect(int fd) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  const long got =
      system_call([&] { return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes); });
  return got < 0 ? got : -error;
}

long connect_and_wait(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  const auto full = [&] { return ::connect(fd, address, bytes); };
  const long flags = system_call([&] { return ::fcntl(fd, F_GETFL); });
  if (flags < 0 || (flags & O_NONBLOCK) != 0) {
    return flags < 0 ? flags : system_call(full);
  }
  // Connecting is not interrupted by its start: O_NONBLOCK counts for that alone.
  (void)system_call([&] { return ::fcntl(fd, F_SETFL, flags | O_NONBLOCK); });
  const long begun = system_call(full);
  (void)system_call([&] { return ::fcntl(fd, F_SETFL, flags); });
  if (begun == -EAGAIN) {
    return capi::call_aside(
        full);  // A local socket whose listener has too many: no descriptor says when.
  }
  if (begun != -EINPROGRESS) {
    return begun;
  }
  int error = 0;
  switch (capi::wait_for(fd, POLLOUT, capi::socket_deadline(fd, SO_SNDTIMEO), error)) {
    case capi::Wait::again:
      return result_of_connect(fd);
    case capi::Wait::timed_out:
      return -EINPROGRESS;
    case capi::Wait::failed:
      return -error;
    case capi::Wait::aside:
      break;
  }
  pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
  const long waited = capi::call_aside([&] { return ::poll(&one, 1, -1); });
  return waited < 0 ? waited : result_of_connect(fd);
}

/// One descriptor that can be read when one of those is ready: itself, or an epoll set of them.
class Several {
 public:
  Several(const pollfd* descriptors, nfds_t count) noexcept {
    for (nfds_t i = 0; i < count; ++i) {
      if (descriptors[i].fd >= 0) {
        last_ = &descriptors[i];
        ++used_;
      }
    }
    if (used_ > 1) {
      make_set(descriptors, count);
    }
  }
  [[nodiscard]] bool is_empty() const noexcept { return used_ == 0; }
  /// False: no set could be made.
  [[nodiscard]] bool is_open() const noexcept { return used_ == 1 || set_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return used_ == 1 ? last_->fd : set_.get(); }
  [[nodiscard]] std::uint32_t events() const noexcept {
    return used_ == 1 ? static_cast<unsigned short>(last_->events) : std::uint32_t{EPOLLIN};
  }
  /// Of a thread that is cancelled.
  void close() noexcept { set_ = {}; }

 private:
  void make_set(const pollfd* descriptors, nfds_t count) noexcept {
    const long made = system_call([] { return ::epoll_create1(EPOLL_CLOEXEC); });
    if (made < 0) {
      return;
    }
    set_ = sterna::FileDescriptor{static_cast<int>(made)};
    for (nfds_t i = 0; i < count; ++i) {
      add(descriptors, i);
    }
  }
  /// One that stands there twice is in the set once, with the events of both.
  void add(const pollfd* descriptors, nfds_t index) noexcept {
    const int fd = descriptors[index].fd;
    if (fd < 0) {
      return;
    }
    epoll_event event{.events = static_cast<unsigned short>(descriptors[index].events),
                      .data = {.fd = fd}};
    const long added =
        system_call([&] { return ::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event); });
    if (added == -EEXIST) {
      for (nfds_t i = 0; i < index; ++i) {
        event.events |=
            descriptors[i].fd == fd ? static_cast<unsigned short>(descriptors[i].events) : 0U;
      }
      (void)system_call([&] { return ::epoll_ctl(set_.get(), EPOLL_CTL_MOD, fd, &event); });
    }
  }

  const pollfd* last_ = nullptr;
  std::uint32_t used_ = 0;
  sterna::FileDescriptor set_;
};

int left_ms(std::uint64_t deadline_ns) noexcept {
  if (deadline_ns == sterna::kNever) {
    return -1;
  }
  const std::uint64_t now = sterna::now_ns();
  const std::uint64_t left = deadline_ns > now ? (deadline_ns - now + kNsOfMs - 1) / kNsOfMs : 0;
  return static_cast<int>(std::min<std::uint64_t>(left, 1U << 30));
}

/// None of them is ready yet. The number of those that are, 0 at the deadline, or an error.
long wait_for_several(pollfd* descriptors, nfds_t count, std::uint64_t deadline_ns) noexcept {
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_io_in_poll();
  }
  Several several{descriptors, count};
  if (several.is_empty()) {
    threads::Semaphore never;
    (void)never.try_acquire_until(deadline_ns);
    return 0;
  }
  threads::Cleanup cleanup{[](void* its) { static_cast<Several*>(its)->close(); }, &several};
  const bool is_cancellable = threads::self()->is_cancellable;
  if (is_cancellable) {
    threads::push_cleanup(cleanup);
  }
  long value = 0;
  for (auto waited = capi::Wait::again; value == 0 && waited == capi::Wait::again;) {
    int error = 0;
    waited = several.is_open() ? capi::wait_for(several.fd(), several.events(), deadline_ns, error)
                               : capi::Wait::aside;
    const int timeout_ms = waited == capi::Wait::aside ? left_ms(deadline_ns) : 0;
    const auto look = [&] { return ::poll(descriptors, count, timeout_ms); };
    value = waited == capi::Wait::aside ? capi::call_aside(look) : system_call(look);
  }
  if (is_cancellable) {
    (void)threads::pop_cleanup(false);
  }
  return value;
}

long poll_until(pollfd* descriptors, nfds_t count, std::uint64_t deadline_ns) noexcept {
  const long value = system_call([&] { return ::poll(descriptors, count, 0); });
  return value != 0 || deadline_ns <= sterna::now_ns()
             ? value
             : wait_for_several(descriptors, count, deadline_ns);
}

struct Wanted {
  short events;   // What poll() is asked for.
  short answers;  // What of its answer counts.
};
constexpr std::array<Wanted, 3> kWanted{Wanted{POLLIN, POLLIN | POLLHUP | POLLERR},
                                        Wanted{POLLOUT, POLLOUT | POLLERR},
                                        Wanted{POLLPRI, POLLPRI}};

using Sets = std::array<fd_set*, 3>;
using Descriptors = std::array<pollfd, FD_SETSIZE>;

/// The descriptors of the sets, from 0 to `count`: how many there are.
nfds_t list_descriptors(int count, const Sets& sets, Descriptors& descriptors) noexcept {
  nfds_t used = 0;
  for (int fd = 0; fd < count; ++fd) {
    pollfd one{.fd = fd, .events = 0, .revents = 0};
    bool is_wanted = false;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (sets[i] != nullptr && FD_ISSET(fd, sets[i])) {
        one.events = static_cast<short>(one.events | kWanted[i].events);
        is_wanted = true;
      }
    }
    if (is_wanted) {
      descriptors[used++] = one;
    }
  }
  return used;
}

/// Whether what poll() said of it is an answer for a set that has it.
bool is_answer(const pollfd& one, const fd_set* set, short answers) noexcept {
  return set != nullptr && FD_ISSET(one.fd, set) && (one.revents & answers) != 0;
}

/// poll() always speaks of a hang-up or an error, also where select() does not: such a descriptor
/// (~fd: for poll() it is none) is left out for a while, since it would end every wait at once.
bool leave_out(std::span<pollfd> descriptors) noexcept {
  bool has_any = false;
  for (pollfd& one : descriptors) {
    if (one.fd >= 0 && one.revents != 0) {
      one.fd = ~one.fd;
      has_any = true;
    }
  }
  return has_any;
}

void take_back(std::span<pollfd> descriptors) noexcept {
  for (pollfd& one : descriptors) {
    one.fd = one.fd < 0 ? ~one.fd : one.fd;
  }
}

/// Until one of them has an answer, at the deadline, or an error; all are back afterwards.
long wait_for_answer(std::span<pollfd> descriptors, const Sets& sets,
                     std::uint64_t deadline_ns) noexcept {
  std::uint64_t until_ns = deadline_ns;
  for (;;) {
    const long value = poll_until(descriptors.data(), descriptors.size(), until_ns);
    if (value < 0) {
      return value;
    }
    bool is_over = sterna::now_ns() >= deadline_ns;
    for (const pollfd& one : descriptors) {
      if (one.fd >= 0 && (one.revents & POLLNVAL) != 0) {
        return -EBADF;
      }
      for (std::size_t i = 0; one.fd >= 0 && i < sets.size(); ++i) {
        is_over = is_over || is_answer(one, sets[i], kWanted[i].answers);
      }
    }
    if (is_over) {
      take_back(descriptors);
      return 0;
    }
    until_ns = deadline_ns;
    if (value == 0) {
      take_back(descriptors);  // It may speak of something else by now.
    } else if (leave_out(descriptors)) {
      until_ns = std::min(deadline_ns, sterna::now_ns() + kLeftOutNs);
    }
  }
}

/// select() by way of poll(): the sets to descriptors, and back.
long select_until(int count, const Sets& sets, std::uint64_t deadline_ns) noexcept {
  Descriptors all;
  const std::span descriptors{all.data(), list_descriptors(count, sets, all)};
  if (const long value = wait_for_answer(descriptors, sets, deadline_ns); value < 0) {
    return value;
  }
  long sum = 0;
  for (const pollfd& one : descriptors) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (is_answer(one, sets[i], kWanted[i].answers)) {
        ++sum;
      } else if (sets[i] != nullptr) {
        FD_CLR(one.fd, sets[i]);
      }
    }
  }
  return sum;
}

}  // namespace

int sterna_connect(int fd, const struct sockaddr* address, socklen_t bytes) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  return static_cast<int>(capi::IoCaller::finish(
      caller.is_plain() ? system_call([&] { return ::connect(fd, address, bytes); })
                        : connect_and_wait(fd, address, bytes)));
}

int sterna_accept(int fd, struct sockaddr* address, socklen_t* bytes, int flags) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  const auto full = [&] { return ::accept4(fd, address, bytes, flags); };
  if (caller.is_plain()) {
    return capi::IoCaller::finish_open(system_call(full), "connection", "(accepted)");
  }
  // Somebody may be faster after any look: only what cannot block is tried here.
  return static_cast<int>(capi::IoCaller::finish(capi::repeat(
      fd, POLLIN, SO_RCVTIMEO,
      [&] {
        return capi::is_nonblocking(fd) ? system_call(full)
               : is_ready(fd, POLLIN)   ? capi::call_aside(full)
                                        : capi::kUntried;
      },
      [&] { return capi::call_aside(full); })));
}

int sterna_poll(struct pollfd* descriptors, nfds_t count, int timeout_ms) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  if (caller.is_plain()) {
    return static_cast<int>(capi::IoCaller::finish(
        system_call([&] { return ::poll(descriptors, count, timeout_ms); })));
  }
  const std::uint64_t deadline_ns =
      timeout_ms < 0 ? sterna::kNever
                     : capi::deadline_of(static_cast<std::uint64_t>(timeout_ms) * kNsOfMs);
  return static_cast<int>(
      capi::IoCaller::finish(poll_until(descriptors, count, timeout_ms == 0 ? 0 : deadline_ns)));
}

int sterna_select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                  struct timeval* timeout) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  if (count < 0 || count > FD_SETSIZE ||
      (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0))) {
    return static_cast<int>(capi::IoCaller::finish(-EINVAL));
  }
  if (caller.is_plain()) {
    return static_cast<int>(capi::IoCaller::finish(
        system_call([&] { return ::select(count, readable, writable, exceptional, timeout); })));
  }
  const std::uint64_t timeout_ns = timeout == nullptr
                                       ? STERNA_FOREVER
                                       : static_cast<std::uint64_t>(timeout->tv_sec) * kNsOfSecond +
                                             static_cast<std::uint64_t>(timeout->tv_usec) * 1000;
  const std::uint64_t deadline_ns = timeout_ns == 0 ? 0 : capi::deadline_of(timeout_ns);
  const long value = select_until(count, {readable, writable, exceptional}, deadline_ns);
  if (timeout != nullptr) {
    const std::uint64_t now = sterna::now_ns();
    const std::uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    timeout->tv_sec = static_cast<time_t>(left / kNsOfSecond);
    timeout->tv_usec = static_cast<suseconds_t>(left % kNsOfSecond / 1000);
  }
  return static_cast<int>(capi::IoCaller::finish(value));
}

int sterna_nanosleep(const struct timespec* duration) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  if (duration == nullptr || duration->tv_sec < 0 || duration->tv_nsec < 0 ||
      duration->tv_nsec >= static_cast<long>(kNsOfSecond)) {
    return static_cast<int>(capi::IoCaller::finish(duration == nullptr ? -EFAULT : -EINVAL));
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return static_cast<int>(capi::IoCaller::finish(capi::refuse_io_in_poll()));
  }
  threads::sleep_for(static_cast<std::uint64_t>(duration->tv_sec) * kNsOfSecond +
                     static_cast<std::uint64_t>(duration->tv_nsec));
  return 0;
}
