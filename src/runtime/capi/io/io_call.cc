// How the calls of io.h wait. See io_call.h.
#include "runtime/capi/io/io_call.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.h"
#include "progress/readiness.h"
#include "runtime/capi/io/rank_descriptors.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/carriers/blocking.h"
#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

constexpr std::uint64_t kNsOfSecond = 1'000'000'000;

/// Made by the first who waits. Null: it cannot be made.
progress::Readiness* readiness() noexcept {
  Program& its = *program();
  its.readiness_once.call([&] {
    auto opened = progress::Readiness::open(*its.rank->progress);
    if (opened) {
      its.readiness = std::move(opened.value());
    }
  });
  return its.readiness.get();
}

}  // namespace

IoCaller::IoCaller() noexcept {
  if (is_in_poll()) [[unlikely]] {
    is_plain_ = false;
  } else if (program() != nullptr && threads::self() != nullptr) {
    is_plain_ = false;
    threads::test_cancel();
  }
}

long IoCaller::finish(long value) noexcept {
  if (value >= 0) {
    return value;
  }
  // A mobile rank has an errno of its own, beside its thread pointer.
  std::optional<UserScope> user;
  if (is_mobile()) {
    user.emplace();
  }
  set_last_error_number(static_cast<int>(-value));
  return -1;
}

int IoCaller::finish_open(long value, const char* what, const char* name) noexcept {
  const RankDescriptors* const ranks = rank_descriptors.load(std::memory_order_acquire);
  if (value > 2 && ranks != nullptr && is_mobile()) [[unlikely]] {
    ranks->note(*find_current_rank()->slot, static_cast<int>(value), what, name);
  }
  return static_cast<int>(finish(value));
}

int IoCaller::descriptor(int fd) noexcept {
  const RankDescriptors* const ranks = rank_descriptors.load(std::memory_order_acquire);
  return fd >= 0 && fd <= 2 && ranks != nullptr && is_mobile()
             ? ranks->real(*find_current_rank()->slot, fd)
             : fd;
}

long refuse_io_in_poll() noexcept {
  (void)refuse_in_poll("a call of io.h");
  return -EDEADLK;
}

long run_aside(FunctionRef<long()> call) noexcept {
  if (is_in_poll()) [[unlikely]] {
    return refuse_io_in_poll();
  }
  return threads::blocking(call);
}

bool is_nonblocking(int fd) noexcept {
  const long flags = system_call([&] { return ::fcntl(fd, F_GETFL); });
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

bool is_regular(int fd) noexcept {
  struct stat info {};
  return system_call([&] { return ::fstat(fd, &info); }) == 0 && S_ISREG(info.st_mode);
}

std::uint64_t socket_deadline(int fd, int option) noexcept {
  timeval timeout{};
  socklen_t bytes = sizeof timeout;
  const long got =
      system_call([&] { return ::getsockopt(fd, SOL_SOCKET, option, &timeout, &bytes); });
  if (got < 0 || (timeout.tv_sec == 0 && timeout.tv_usec == 0)) {
    return kNever;
  }
  return deadline_of(static_cast<std::uint64_t>(timeout.tv_sec) * kNsOfSecond +
                     static_cast<std::uint64_t>(timeout.tv_usec) * 1000);
}

Wait wait_for(int fd, std::uint32_t events, std::uint64_t deadline_ns, int& error) noexcept {
  if (is_in_poll()) [[unlikely]] {
    error = static_cast<int>(-refuse_io_in_poll());
    return Wait::failed;
  }
  progress::Readiness* const its = readiness();
  if (its == nullptr) {
    return Wait::aside;
  }
  switch (its->wait(fd, events, deadline_ns, error)) {
    case progress::Readiness::Outcome::ready:
      return Wait::again;
    case progress::Readiness::Outcome::timed_out:
      return Wait::timed_out;
    case progress::Readiness::Outcome::always:
      return Wait::aside;
    case progress::Readiness::Outcome::failed:
      break;
  }
  return error == EBADF ? Wait::failed : Wait::aside;
}

long repeat(int fd, std::uint32_t events, int timeout_option, FunctionRef<long()> attempt,
            FunctionRef<long()> aside) noexcept {
  long value = attempt();
  if (value != -EAGAIN && value != kUntried) [[likely]] {
    return value;
  }
  if (is_nonblocking(fd)) {
    // To a regular file O_NONBLOCK says nothing: only our own attempt has not waited for its disk.
    return value == kUntried || is_regular(fd) ? aside() : value;
  }
  const std::uint64_t deadline_ns =
      timeout_option != 0 ? socket_deadline(fd, timeout_option) : kNever;
  while (value == -EAGAIN || value == kUntried) {
    int error = 0;
    switch (wait_for(fd, events, deadline_ns, error)) {
      case Wait::again:
        value = value == kUntried ? aside() : attempt();
        break;
      case Wait::aside:
        return aside();
      case Wait::timed_out:
        return -EAGAIN;
      case Wait::failed:
        return -error;
    }
  }
  return value;
}

void Remaining::skip(std::size_t bytes) noexcept {
  bytes += offset_;
  offset_ = 0;
  while (first_ != end_ && bytes >= first_->iov_len) {
    bytes -= first_++->iov_len;
  }
  offset_ = bytes;
}

Remaining::Parts Remaining::parts() noexcept {
  if (offset_ == 0) {
    return {first_, static_cast<int>(end_ - first_)};
  }
  const std::size_t count = std::min(window_.size(), static_cast<std::size_t>(end_ - first_));
  std::copy_n(first_, count, window_.begin());
  window_[0].iov_base = static_cast<char*>(window_[0].iov_base) + offset_;
  window_[0].iov_len -= offset_;
  return {window_.data(), static_cast<int>(count)};
}

}  // namespace sterna::runtime::capi
