// System calls and their errors. Only syscall.cc touches errno: its address is the kernel thread's,
// and a compiler may keep it across a switch of user threads.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sterna {

/// The error number of the last failed libc call of this kernel thread. Never inlined.
[[nodiscard]] int last_error_number() noexcept;
void set_last_error_number(int number) noexcept;
/// errno of this kernel thread: where it lies. Never inlined.
[[nodiscard]] int* error_number_address() noexcept;

/// "No such file or directory" and the like.
[[nodiscard]] std::string error_number_text(int number);

/// Errc::system with "<what>: <words of the system>"; `number` is positive.
/// `what` says who, where and what to do.
[[nodiscard]] Error system_error(std::string_view what, int number);

/// Calls `call()` again while it is interrupted. Returns its value, or the negated error number:
///   const long count = system_call([&] { return ::read(fd, data, bytes); });
template <typename Call>
[[nodiscard]] long system_call(Call&& call) noexcept {
  for (;;) {
    const auto value = call();
    if (value != -1) [[likely]] {
      return static_cast<long>(value);
    }
    if (const int number = last_error_number(); number != EINTR) {
      return -number;
    }
  }
}

/// A system call without libc: writes no errno, touches no thread-local storage, so it is right on
/// any thread pointer. Returns the value or the negated error number. Not retried.
long raw_system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                     long f = 0) noexcept;

/// A file descriptor that is closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() noexcept = default;
  explicit FileDescriptor(int fd) noexcept : fd_{fd} {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_{other.release()} {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// The caller closes it from now on.
  [[nodiscard]] int release() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace sterna
