// io.h: all of what is asked for, over the calls that a program makes itself.
#include <cerrno>

#include <poll.h>
#include <sterna/control.h>
#include <sterna/io.h>

#include "runtime/capi/io/io_call.h"

namespace capi = sterna::runtime::capi;

namespace {

/// A descriptor that does not block is waited for as if it did; a kernel thread's call that a
/// signal has interrupted goes on. False: an error that stays.
bool may_go_on(int fd, short events) noexcept {
  const int error = *sterna_errno();
  if (error == EINTR) {
    return true;
  }
  if (error != EAGAIN && error != EWOULDBLOCK) {
    return false;
  }
  pollfd waited{.fd = fd, .events = events, .revents = 0};
  while (sterna_poll(&waited, 1, -1) < 0) {
    if (*sterna_errno() != EINTR) {
      return false;
    }
  }
  return true;
}

template <typename Transfer>
ssize_t transfer_all(int fd, const iovec* parts, int count, short events,
                     Transfer transfer) noexcept {
  if (count < 0) {
    return transfer(fd, parts, count);  // The kernel says what is wrong.
  }
  capi::Remaining rest{parts, static_cast<std::size_t>(count)};
  ssize_t sum = 0;
  rest.skip(0);  // Parts of no bytes are none.
  while (!rest.is_empty()) {
    const capi::Remaining::Parts now = rest.parts();
    const ssize_t value = transfer(fd, now.first, now.count);
    if (value == 0) {
      break;
    }
    if (value > 0) {
      sum += value;
      rest.skip(static_cast<std::size_t>(value));
    } else if (!may_go_on(fd, events)) {
      return -1;
    }
  }
  return sum;
}

}  // namespace

extern "C" {

ssize_t sterna_readv_exactly(int fd, const iovec* parts, int count) noexcept {
  return transfer_all(fd, parts, count, POLLIN, sterna_readv);
}

ssize_t sterna_writev_exactly(int fd, const iovec* parts, int count) noexcept {
  return transfer_all(fd, parts, count, POLLOUT, sterna_writev);
}

ssize_t sterna_read_exactly(int fd, void* buffer, size_t bytes) noexcept {
  const iovec part{.iov_base = buffer, .iov_len = bytes};
  return sterna_readv_exactly(fd, &part, 1);
}

ssize_t sterna_write_exactly(int fd, const void* data, size_t bytes) noexcept {
  const iovec part{.iov_base = const_cast<void*>(data), .iov_len = bytes};
  return sterna_writev_exactly(fd, &part, 1);
}

}  // extern "C"
