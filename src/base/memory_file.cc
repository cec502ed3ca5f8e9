// Making files in memory within the limits of the process.
#include "base/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace sterna {
namespace {

/// The usual limit of 1,024 descriptors is only the soft one. False: there are no more.
bool raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) {
    return false;
  }
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

Result<FileDescriptor> create_memory_file(const char* name, std::uint64_t bytes) noexcept {
  FileDescriptor file{::memfd_create(name, MFD_CLOEXEC)};
  if (!file.is_open() && last_error_number() == EMFILE && raise_descriptor_limit()) {
    file = FileDescriptor{::memfd_create(name, MFD_CLOEXEC)};
  }
  if (!file.is_open()) {
    const int number = last_error_number();
    return system_error(number == EMFILE ? "no file in memory (ulimit -n)" : "no file in memory",
                        number);
  }
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  static_cast<void>(::getrlimit(RLIMIT_FSIZE, &limit));
  if (limit.rlim_max < bytes) {
    return Error{Errc::refused, fmt::format("a file may have {} bytes at most here, memory that is "
                                            "shared counts as one, and {} are needed (ulimit -f)",
                                            limit.rlim_max, bytes)};
  }
  const bool is_raised = limit.rlim_cur < bytes;
  if (is_raised) {
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    static_cast<void>(::setrlimit(RLIMIT_FSIZE, &raised));
  }
  const bool is_sized = ::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0;
  const int number = last_error_number();
  if (is_raised) {
    static_cast<void>(::setrlimit(RLIMIT_FSIZE, &limit));
  }
  if (!is_sized) {
    return system_error(fmt::format("no file in memory of {} bytes", bytes), number);
  }
  return file;
}

}  // namespace sterna
