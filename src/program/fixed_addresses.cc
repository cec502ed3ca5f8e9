// personality(2) says how the next executable is laid out, so the process starts itself again.
// Where a container forbids that, it does so without the kernel (user_exec.cc).
#include "program/fixed_addresses.h"

#include <cstdlib>
#include <cstring>

#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include "program/user_exec.h"

namespace sterna::program {
namespace {

// Passed through exec, so that a kernel that ignores the personality does not make a loop.
constexpr char kMark[] = "STERNA_FIXED_ADDRESSES=1";
constexpr char kMarkName[] = "STERNA_FIXED_ADDRESSES";
// The same, and the limit of the stack was lowered on the way: to be raised again.
constexpr char kStackMark[] = "STERNA_FIXED_ADDRESSES=stack";
constexpr rlim_t kStackLimit = rlim_t{64} << 20;

/// Starts this executable again; returns if that fails.
void exec_again(char** arguments, char** environment, const char* mark) noexcept {
  std::size_t count = 0;
  while (environment[count] != nullptr) {
    ++count;
  }
  auto** marked = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (marked == nullptr) {
    return;
  }
  std::memcpy(marked, environment, count * sizeof(char*));
  marked[count] = const_cast<char*>(mark);
  marked[count + 1] = nullptr;
  // By its own path, so that ps and top show its name; by the link if that path is gone.
  char path[4096];
  if (const ssize_t bytes = ::readlink("/proc/self/exe", path, sizeof path - 1); bytes > 0) {
    path[bytes] = '\0';
    ::execve(path, arguments, marked);
  }
  ::execve("/proc/self/exe", arguments, marked);
  std::free(marked);
}

/// With an unlimited stack the kernel places mappings from below, where our fixed places are. It
/// looks at the limit when it lays a process out: so we start again with another one.
void exec_with_limited_stack(char** arguments, char** environment) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
    return;
  }
  rlimit lower = limit;
  lower.rlim_cur = kStackLimit;
  if (::setrlimit(RLIMIT_STACK, &lower) == 0) {
    exec_again(arguments, environment, kStackMark);
    ::setrlimit(RLIMIT_STACK, &limit);
  }
}

void restore_stack_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_STACK, &limit);
  }
}

}  // namespace

AddressLayout ensure_fixed_addresses(char** arguments, char** environment) noexcept {
  const int current = ::personality(0xffffffff);
  const bool is_fixed = current >= 0 && (current & ADDR_NO_RANDOMIZE) != 0;
  const char* const mark = std::getenv(kMarkName);
  const bool is_second_try = mark != nullptr;
  const bool is_stack_limited = is_second_try && std::strcmp(mark, "stack") == 0;
  if (is_fixed || is_at_fixed_place()) {
    // Ranks' programs start other programs, which are none of ours.
    ::unsetenv(kMarkName);
    return AddressLayout::fixed;
  }
  if (!is_second_try && current >= 0 &&
      ::personality(static_cast<unsigned long>(current) | ADDR_NO_RANDOMIZE) >= 0) {
    exec_again(arguments, environment, kMark);
  }
  ::unsetenv(kMarkName);
  if (!is_second_try) {
    exec_with_limited_stack(arguments, environ);
  }
  if (is_stack_limited) {
    restore_stack_limit();  // It counts for mappings at the start of a process only.
  }
  exec_at_fixed_place(arguments, environ, kMark);
  return AddressLayout::randomized;
}

}  // namespace sterna::program
