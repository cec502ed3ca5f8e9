// io.h: files and sockets.
#include <cerrno>
#include <span>

#include <fcntl.h>
#include <sterna/io.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/capi/io/io_call.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
using sterna::system_call;
using sterna::runtime::RuntimeScope;

namespace {

constexpr off_t kHere = -1;  // At the position of the descriptor.

/// What the kernel cannot try for this kind of file is told apart from what it has tried.
long tried(long value) noexcept {
  return value == -EOPNOTSUPP || value == -ENOSYS ? capi::kUntried : value;
}

std::size_t bytes_in(const iovec* parts, int count) noexcept {
  std::size_t sum = 0;
  for (const iovec& part : std::span{parts, static_cast<std::size_t>(count)}) {
    sum += part.iov_len;
  }
  return sum;
}

/// A file of which only the first part was in memory, or that has no more: what is in memory now is
/// taken at once, and the end is seen so; the rest comes from the disk.
long read_rest(int fd, capi::Remaining& rest, off_t offset, long done) noexcept {
  while (!rest.is_empty()) {
    const capi::Remaining::Parts left = rest.parts();
    const off_t from = offset == kHere ? kHere : offset + done;
    long value =
        tried(system_call([&] { return ::preadv2(fd, left.first, left.count, from, RWF_NOWAIT); }));
    if (value == -EAGAIN || value == capi::kUntried) {
      value = capi::call_aside([&] {
        return from == kHere ? ::readv(fd, left.first, left.count)
                             : ::preadv(fd, left.first, left.count, from);
      });
    }
    if (value <= 0) {
      break;  // What has come counts; an error comes again.
    }
    done += value;
    rest.skip(static_cast<std::size_t>(value));
  }
  return done;
}

long transfer_in(int given, const iovec* parts, int count, off_t offset) noexcept {
  const int fd = capi::IoCaller::descriptor(given);
  const auto full = [&] {
    return offset == kHere ? ::readv(fd, parts, count) : ::preadv(fd, parts, count, offset);
  };
  const capi::IoCaller caller;
  if (caller.is_plain() || count < 0) {
    return capi::IoCaller::finish(system_call(full));
  }
  const long value = capi::repeat(
      fd, POLLIN, SO_RCVTIMEO,
      [&] {
        return tried(system_call([&] { return ::preadv2(fd, parts, count, offset, RWF_NOWAIT); }));
      },
      [&] { return capi::call_aside(full); });
  if (value > 0 && static_cast<std::size_t>(value) < bytes_in(parts, count) &&
      capi::is_regular(fd)) {
    capi::Remaining rest{parts, static_cast<std::size_t>(count)};
    rest.skip(static_cast<std::size_t>(value));
    return read_rest(fd, rest, offset, value);
  }
  return capi::IoCaller::finish(value);
}

/// Until all is gone, as a call that blocks would: attempt and aside send what is left, a part of
/// it perhaps.
template <typename Attempt, typename Aside>
long send_all(int fd, capi::Remaining& rest, Attempt attempt, Aside aside) noexcept {
  long sum = 0;
  for (;;) {
    const long value = capi::repeat(
        fd, POLLOUT, SO_SNDTIMEO, [&]() -> long { return attempt(rest, sum); },
        [&]() -> long { return aside(rest, sum); });
    if (value < 0) {
      return sum > 0 ? sum : value;
    }
    sum += value;
    rest.skip(static_cast<std::size_t>(value));
    if (rest.is_empty() || value == 0 || capi::is_nonblocking(fd)) {
      return sum;
    }
  }
}

long transfer_out(int given, const iovec* parts, int count, off_t offset) noexcept {
  const int fd = capi::IoCaller::descriptor(given);
  const capi::IoCaller caller;
  if (caller.is_plain() || count < 0) {
    return capi::IoCaller::finish(system_call([&] {
      return offset == kHere ? ::writev(fd, parts, count) : ::pwritev(fd, parts, count, offset);
    }));
  }
  capi::Remaining rest{parts, static_cast<std::size_t>(count)};
  const auto from = [&](long done) { return offset == kHere ? kHere : offset + done; };
  return capi::IoCaller::finish(send_all(
      fd, rest,
      [&](capi::Remaining& left, long done) {
        const auto now = left.parts();
        return tried(system_call(
            [&] { return ::pwritev2(fd, now.first, now.count, from(done), RWF_NOWAIT); }));
      },
      [&](capi::Remaining& left, long done) {
        const auto now = left.parts();
        return capi::call_aside([&] {
          return offset == kHere ? ::writev(fd, now.first, now.count)
                                 : ::pwritev(fd, now.first, now.count, from(done));
        });
      }));
}

/// A call of which nothing is known before.
template <typename Call>
long call_somewhere(Call call) noexcept {
  const capi::IoCaller caller;
  return capi::IoCaller::finish(caller.is_plain() ? system_call(call) : capi::call_aside(call));
}

/// With MSG_WAITALL there is no attempt: it might take a part.
template <typename Receive>
long receive(int fd, int flags, Receive call) noexcept {
  const capi::IoCaller caller;
  if (caller.is_plain() || (flags & MSG_DONTWAIT) != 0) {
    return capi::IoCaller::finish(system_call([&] { return call(flags); }));
  }
  return capi::IoCaller::finish(capi::repeat(
      fd, (flags & MSG_OOB) != 0 ? POLLPRI : POLLIN, SO_RCVTIMEO,
      [&] {
        return (flags & MSG_WAITALL) != 0 ? capi::kUntried
                                          : system_call([&] { return call(flags | MSG_DONTWAIT); });
      },
      [&] { return capi::call_aside([&] { return call(flags); }); }));
}

}  // namespace

ssize_t sterna_read(int fd, void* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  const iovec part{buffer, bytes};
  return transfer_in(fd, &part, 1, kHere);
}

ssize_t sterna_readv(int fd, const struct iovec* parts, int count) noexcept {
  const RuntimeScope scope;
  return transfer_in(fd, parts, count, kHere);
}

ssize_t sterna_pread(int fd, void* buffer, size_t bytes, off_t offset) noexcept {
  const RuntimeScope scope;
  const iovec part{buffer, bytes};
  if (offset < 0) {
    return capi::IoCaller::finish(-EINVAL);
  }
  return transfer_in(fd, &part, 1, offset);
}

ssize_t sterna_write(int fd, const void* data, size_t bytes) noexcept {
  const RuntimeScope scope;
  const iovec part{const_cast<void*>(data), bytes};
  return transfer_out(fd, &part, 1, kHere);
}

ssize_t sterna_writev(int fd, const struct iovec* parts, int count) noexcept {
  const RuntimeScope scope;
  return transfer_out(fd, parts, count, kHere);
}

ssize_t sterna_pwrite(int fd, const void* data, size_t bytes, off_t offset) noexcept {
  const RuntimeScope scope;
  const iovec part{const_cast<void*>(data), bytes};
  if (offset < 0) {
    return capi::IoCaller::finish(-EINVAL);
  }
  return transfer_out(fd, &part, 1, offset);
}

int sterna_fsync(int fd) noexcept {
  const RuntimeScope scope;
  return static_cast<int>(call_somewhere([&] { return ::fsync(fd); }));
}

int sterna_fdatasync(int fd) noexcept {
  const RuntimeScope scope;
  return static_cast<int>(call_somewhere([&] { return ::fdatasync(fd); }));
}

int sterna_tcdrain(int fd) noexcept {
  const RuntimeScope scope;
  return static_cast<int>(call_somewhere([&] { return ::tcdrain(fd); }));
}

int sterna_open(const char* path, int flags, mode_t mode) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  const auto call = [&] { return ::open(path, flags, mode); };
  return capi::IoCaller::finish_open(caller.is_plain() ? system_call(call) : capi::call_aside(call),
                                     "file", path);
}

ssize_t sterna_recv(int fd, void* buffer, size_t bytes, int flags) noexcept {
  const RuntimeScope scope;
  return receive(fd, flags, [&](int used) { return ::recv(fd, buffer, bytes, used); });
}

ssize_t sterna_recvfrom(int fd, void* buffer, size_t bytes, int flags, struct sockaddr* address,
                        socklen_t* address_bytes) noexcept {
  const RuntimeScope scope;
  return receive(fd, flags, [&](int used) {
    return ::recvfrom(fd, buffer, bytes, used, address, address_bytes);
  });
}

ssize_t sterna_recvmsg(int fd, struct msghdr* message, int flags) noexcept {
  const RuntimeScope scope;
  return receive(fd, flags, [&](int used) { return ::recvmsg(fd, message, used); });
}

ssize_t sterna_send(int fd, const void* data, size_t bytes, int flags) noexcept {
  return sterna_sendto(fd, data, bytes, flags, nullptr, 0);
}

ssize_t sterna_sendto(int fd, const void* data, size_t bytes, int flags,
                      const struct sockaddr* address, socklen_t address_bytes) noexcept {
  const iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = address_bytes;
  message.msg_iov = const_cast<iovec*>(&part);
  message.msg_iovlen = 1;
  return sterna_sendmsg(fd, &message, flags);
}

ssize_t sterna_sendmsg(int fd, const struct msghdr* message, int flags) noexcept {
  const RuntimeScope scope;
  const capi::IoCaller caller;
  if (caller.is_plain() || (flags & MSG_DONTWAIT) != 0 || message == nullptr) {
    return capi::IoCaller::finish(system_call([&] { return ::sendmsg(fd, message, flags); }));
  }
  // What goes along with the data (rights, a time) goes with its first part.
  const auto now = [&](capi::Remaining& left, long done) {
    msghdr part = *message;
    const auto [parts, count] = left.parts();
    part.msg_iov = const_cast<iovec*>(parts);
    part.msg_iovlen = static_cast<std::size_t>(count);
    if (done != 0) {
      part.msg_control = nullptr;
      part.msg_controllen = 0;
    }
    return part;
  };
  capi::Remaining rest{message->msg_iov, message->msg_iovlen};
  return capi::IoCaller::finish(send_all(
      fd, rest,
      [&](capi::Remaining& left, long done) {
        const msghdr part = now(left, done);
        return system_call([&] { return ::sendmsg(fd, &part, flags | MSG_DONTWAIT); });
      },
      [&](capi::Remaining& left, long done) {
        const msghdr part = now(left, done);
        return capi::call_aside([&] { return ::sendmsg(fd, &part, flags); });
      }));
}
