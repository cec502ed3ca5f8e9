// System calls and errno.
#include "base/syscall.h"

#include <cstring>
#include <utility>

#include <unistd.h>

namespace sterna {

int last_error_number() noexcept {
  return errno;
}

void set_last_error_number(int number) noexcept {
  errno = number;
}

int* error_number_address() noexcept {
  return &errno;
}

std::string error_number_text(int number) {
  char text[128];
  // The GNU form: returns the text, which may or may not be in the buffer.
  return strerror_r(number, text, sizeof text);
}

Error system_error(std::string_view what, int number) {
  return {number == ENOMEM ? Errc::out_of_memory : Errc::system,
          std::string{what} + ": " + error_number_text(number)};
}

long raw_system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory", "cc");
  return x0;
#else
  const long result = ::syscall(number, a, b, c, d, e, f);
  return result == -1 ? -last_error_number() : result;
#endif
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);  // Ours is closed with `other`.
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

int FileDescriptor::release() noexcept {
  return std::exchange(fd_, -1);
}

}  // namespace sterna
