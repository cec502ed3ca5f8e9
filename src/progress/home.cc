// The processor of each process of a host, and the way there.
#include "progress/home.h"

#include <array>
#include <charconv>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna::progress {
namespace {

/// Who asks shares a processor with somebody: where no more run than there are processors, one of
/// these has nobody.
bool is_a_processor_idle() noexcept {
  const long opened =
      raw_system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/loadavg"),
                      O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    return false;
  }
  const FileDescriptor file{static_cast<int>(opened)};
  std::array<char, 128> text;
  const long bytes = raw_system_call(SYS_read, file.get(), reinterpret_cast<long>(text.data()),
                                     static_cast<long>(text.size()));
  const std::uint32_t running =
      bytes > 0 ? running_in({text.data(), static_cast<std::size_t>(bytes)}) : 0;
  return running != 0 && static_cast<long>(running) <= ::sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

// "0.20 0.18 0.12 1/80 11206": proc_loadavg(5).
std::uint32_t running_in(std::string_view loadavg) noexcept {
  const std::size_t slash = loadavg.find('/');
  const std::size_t blank = loadavg.substr(0, slash).rfind(' ');
  std::uint32_t running = 0;
  if (slash == std::string_view::npos || blank == std::string_view::npos ||
      std::from_chars(loadavg.data() + blank + 1, loadavg.data() + slash, running).ptr !=
          loadavg.data() + slash) {
    return 0;
  }
  return running;
}

int home_in(const cpu_set_t& allowed, std::uint32_t index) noexcept {
  const int count = CPU_COUNT(&allowed);
  if (count == 0) {
    return -1;
  }
  std::uint32_t left = index % static_cast<std::uint32_t>(count);
  int processor = 0;
  while (!CPU_ISSET(processor, &allowed) || left-- != 0) {
    ++processor;
  }
  return processor;
}

namespace {

/// The caller may run there again afterwards: `allowed`.
void move_to(const cpu_set_t& processors, const cpu_set_t& allowed) noexcept {
  if (::sched_setaffinity(0, sizeof processors, &processors) == 0) {
    (void)::sched_setaffinity(0, sizeof allowed, &allowed);
  }
}

/// False: bound to one, or more processors than fit the set.
bool may_move(cpu_set_t& allowed) noexcept {
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
}

}  // namespace

void go_home(std::uint32_t index) noexcept {
  cpu_set_t allowed;
  if (!may_move(allowed)) {
    return;
  }
  const int home = home_in(allowed, index);
  if (home == ::sched_getcpu() || !is_a_processor_idle()) {
    return;
  }
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(home, &only);
  move_to(only, allowed);
}

void go_elsewhere() noexcept {
  cpu_set_t allowed;
  const int here = ::sched_getcpu();
  if (here < 0 || !may_move(allowed) || !is_a_processor_idle()) {
    return;
  }
  cpu_set_t others = allowed;
  CPU_CLR(here, &others);
  move_to(others, allowed);
}

}  // namespace sterna::progress
