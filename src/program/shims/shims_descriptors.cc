// Descriptors: opened by the kernel as ever, but noted, since they do not move with a rank; and 0,
// 1 and 2, which are the rank's own streams.
#include <cerrno>
#include <cstdarg>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

namespace sterna::program {
namespace {

int note(int fd, const char* what, const char* name) noexcept {
  RankData* const data = find_calling_data();
  if (fd > 2 && data != nullptr) {
    add_blocker(*data, BlockerKind::file, static_cast<std::uint64_t>(fd), "%s %s is open", what,
                name);
  }
  return fd;
}

int note_pair(int result, const int (&fds)[2], const char* what) noexcept {
  if (result == 0) {
    note(fds[0], what, "(one end)");
    note(fds[1], what, "(other end)");
  }
  return result;
}

mode_t mode_of(int flags, va_list arguments) noexcept {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int shim_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int fd = ::open(path, flags, mode_of(flags, arguments));
  va_end(arguments);
  return note(fd, "file", path);
}

int shim_openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int fd = ::openat(directory, path, flags, mode_of(flags, arguments));
  va_end(arguments);
  return note(fd, "file", path);
}

int shim_open_2(const char* path, int flags) {
  return note(::open(path, flags), "file", path);
}
int shim_openat_2(int directory, const char* path, int flags) {
  return note(::openat(directory, path, flags), "file", path);
}
int shim_creat(const char* path, mode_t mode) {
  return note(::creat(path, mode), "file", path);
}

int shim_close(int fd) {
  RankData* const caller = find_calling_data();
  if (caller == nullptr) {
    return ::close(fd);
  }
  RankData& data = *caller;
  if (fd < 0 || fd > 2) {
    remove_blocker(data, BlockerKind::file, static_cast<std::uint64_t>(fd));
    return ::close(fd);
  }
  // The node's own descriptors stay open; the rank's may have been sent elsewhere.
  redirect_stream(data, fd, -1);
  return 0;
}

/// What `fd` of the rank is for the kernel.
int real_fd(const RankData& data, int fd) noexcept {
  return fd >= 0 && fd <= 2 && data.redirected[fd] >= 0 ? data.redirected[fd] : fd;
}

/// True: output of the rank that goes to the host.
bool is_output(const RankData& data, int fd) noexcept {
  return (fd == 1 || fd == 2) && data.redirected[fd] < 0;
}

ssize_t shim_write(int fd, const void* bytes, std::size_t count) {
  RankData* const data = find_calling_data();
  if (data == nullptr) {
    return ::write(fd, bytes, count);
  }
  if (is_output(*data, fd)) {
    write_output(*data, static_cast<OutputStream>(fd), {static_cast<const char*>(bytes), count});
    return static_cast<ssize_t>(count);
  }
  return ::write(real_fd(*data, fd), bytes, count);
}

ssize_t shim_writev(int fd, const iovec* pieces, int count) {
  RankData* const data = find_calling_data();
  if (data == nullptr || !is_output(*data, fd)) {
    return ::writev(data != nullptr ? real_fd(*data, fd) : fd, pieces, count);
  }
  ssize_t total = 0;
  for (int index = 0; index < count; ++index) {
    total += shim_write(fd, pieces[index].iov_base, pieces[index].iov_len);
  }
  return total;
}

ssize_t shim_read(int fd, void* bytes, std::size_t count) {
  RankData* const caller = find_calling_data();
  if (caller == nullptr) {
    return ::read(fd, bytes, count);
  }
  RankData& data = *caller;
  if (fd != 0 || data.redirected[0] >= 0) {
    return ::read(real_fd(data, fd), bytes, count);
  }
  const long got = on_worker(data, [&] {
    return host_calls().read_input(*data.slot, {static_cast<char*>(bytes), count});
  });
  if (got < 0) {
    set_last_error_number(static_cast<int>(-got));
    return -1;
  }
  return got;
}

ssize_t shim_read_checked(int fd, void* bytes, std::size_t count, std::size_t room) {
  return shim_read(fd, bytes, std::min(count, room));
}

int shim_dup(int fd) {
  return note(::dup(real_fd(calling_data(), fd)), "descriptor", "(by dup)");
}

/// dup2 onto 0, 1 or 2 redirects the rank's stream, not the node's.
int shim_dup3(int fd, int onto, int flags) {
  RankData& data = calling_data();
  if (onto < 0 || onto > 2) {
    const int result = ::dup3(real_fd(data, fd), onto, flags);
    if (result >= 0) {
      remove_blocker(data, BlockerKind::file, static_cast<std::uint64_t>(onto));
    }
    return note(result, "descriptor", "(by dup2)");
  }
  const int copy = ::fcntl(real_fd(data, fd), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) {
    return -1;
  }
  redirect_stream(data, onto, note(copy, "descriptor", "(a redirected standard stream)"));
  return onto;
}

int shim_dup2(int fd, int onto) {
  return fd == onto ? ::fcntl(fd, F_GETFD) < 0 ? -1 : fd : shim_dup3(fd, onto, 0);
}

int shim_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const RankData* const data = find_calling_data();
  const int result = ::fcntl(data != nullptr ? real_fd(*data, fd) : fd, command, argument);
  const bool is_copy = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return is_copy ? note(result, "descriptor", "(by fcntl)") : result;
}

int shim_pipe(int* fds) {
  int pair[2];
  const int result = note_pair(::pipe(pair), pair, "pipe");
  if (result == 0) {
    fds[0] = pair[0];
    fds[1] = pair[1];
  }
  return result;
}

int shim_pipe2(int* fds, int flags) {
  int pair[2];
  const int result = note_pair(::pipe2(pair, flags), pair, "pipe");
  if (result == 0) {
    fds[0] = pair[0];
    fds[1] = pair[1];
  }
  return result;
}

int shim_socket(int domain, int type, int protocol) {
  return note(::socket(domain, type, protocol), "socket", "");
}

int shim_socketpair(int domain, int type, int protocol, int* fds) {
  int pair[2];
  const int result = note_pair(::socketpair(domain, type, protocol, pair), pair, "socket pair");
  if (result == 0) {
    fds[0] = pair[0];
    fds[1] = pair[1];
  }
  return result;
}

int shim_accept(int fd, sockaddr* address, socklen_t* bytes) {
  return note(::accept(fd, address, bytes), "socket", "(accepted)");
}
int shim_accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  return note(::accept4(fd, address, bytes, flags), "socket", "(accepted)");
}
int shim_epoll_create(int size) {
  return note(::epoll_create(size), "epoll", "");
}
int shim_epoll_create1(int flags) {
  return note(::epoll_create1(flags), "epoll", "");
}
int shim_eventfd(unsigned value, int flags) {
  return note(::eventfd(value, flags), "eventfd", "");
}
int shim_timerfd(int clock, int flags) {
  return note(::timerfd_create(clock, flags), "timer", "");
}
int shim_memfd(const char* name, unsigned flags) {
  return note(::memfd_create(name, flags), "memory file", name);
}
int shim_shm_open(const char* name, int flags, mode_t mode) {
  return note(::shm_open(name, flags, mode), "shared memory", name);
}
int shim_signalfd(int fd, const sigset_t* signals, int flags) {
  const int result = ::signalfd(fd, signals, flags);
  return result == fd ? fd : note(result, "signalfd", "");
}
int shim_inotify() {
  return note(::inotify_init(), "inotify", "");
}
int shim_inotify1(int flags) {
  return note(::inotify_init1(flags), "inotify", "");
}
int shim_mkstemp(char* pattern) {
  return note(::mkstemp(pattern), "file", pattern);
}
int shim_mkostemp(char* pattern, int flags) {
  return note(::mkostemp(pattern, flags), "file", pattern);
}
int shim_mkstemps(char* pattern, int suffix_bytes) {
  return note(::mkstemps(pattern, suffix_bytes), "file", pattern);
}
int shim_mkostemps(char* pattern, int suffix_bytes, int flags) {
  return note(::mkostemps(pattern, suffix_bytes, flags), "file", pattern);
}

}  // namespace

std::span<const Shim> descriptor_shims() {
  static const Shim shims[] = {
      function_shim("open", shim_open),
      function_shim("open64", shim_open),
      function_shim("__open_2", shim_open_2),
      function_shim("__open64_2", shim_open_2),
      function_shim("openat", shim_openat),
      function_shim("openat64", shim_openat),
      function_shim("__openat_2", shim_openat_2),
      function_shim("__openat64_2", shim_openat_2),
      function_shim("creat", shim_creat),
      function_shim("creat64", shim_creat),
      function_shim("close", shim_close),
      function_shim("write", shim_write),
      function_shim("writev", shim_writev),
      function_shim("read", shim_read),
      function_shim("__read_chk", shim_read_checked),
      function_shim("dup", shim_dup),
      function_shim("dup2", shim_dup2),
      function_shim("dup3", shim_dup3),
      function_shim("pipe", shim_pipe),
      function_shim("pipe2", shim_pipe2),
      function_shim("socket", shim_socket),
      function_shim("socketpair", shim_socketpair),
      function_shim("accept", shim_accept),
      function_shim("accept4", shim_accept4),
      function_shim("epoll_create", shim_epoll_create),
      function_shim("epoll_create1", shim_epoll_create1),
      function_shim("eventfd", shim_eventfd),
      function_shim("timerfd_create", shim_timerfd),
      function_shim("memfd_create", shim_memfd),
      function_shim("shm_open", shim_shm_open),
      function_shim("signalfd", shim_signalfd),
      function_shim("inotify_init", shim_inotify),
      function_shim("inotify_init1", shim_inotify1),
      function_shim("fcntl", shim_fcntl),
      function_shim("fcntl64", shim_fcntl),
      function_shim("mkstemp", shim_mkstemp),
      function_shim("mkstemp64", shim_mkstemp),
      function_shim("mkostemp", shim_mkostemp),
      function_shim("mkostemp64", shim_mkostemp),
      function_shim("mkstemps", shim_mkstemps),
      function_shim("mkstemps64", shim_mkstemps),
      function_shim("mkostemps", shim_mkostemps),
      function_shim("mkostemps64", shim_mkostemps),
  };
  return shims;
}

}  // namespace sterna::program
