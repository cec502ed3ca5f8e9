// personality(2) says how the next executable is laid out, so the process starts itself again.
// Where a container forbids that, it does so without the kernel (user_exec.cc).
#include "program/fixed_addresses.h"

#include <cstdlib>
#include <cstring>

#include <sys/personality.h>
#include <unistd.h>

#include "program/user_exec.h"

namespace sterna::program {
namespace {

// Passed through exec, so that a kernel that ignores the personality does not make a loop.
constexpr char kMark[] = "STERNA_FIXED_ADDRESSES=1";
constexpr char kMarkName[] = "STERNA_FIXED_ADDRESSES";

/// Starts this executable again; returns if that fails.
void exec_again(char** arguments, char** environment) noexcept {
  std::size_t count = 0;
  while (environment[count] != nullptr) {
    ++count;
  }
  auto** marked = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (marked == nullptr) {
    return;
  }
  std::memcpy(marked, environment, count * sizeof(char*));
  marked[count] = const_cast<char*>(kMark);
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

}  // namespace

AddressLayout ensure_fixed_addresses(char** arguments, char** environment) noexcept {
  const int current = ::personality(0xffffffff);
  const bool is_fixed = current >= 0 && (current & ADDR_NO_RANDOMIZE) != 0;
  const bool is_second_try = std::getenv(kMarkName) != nullptr;
  if (is_fixed || is_at_fixed_place()) {
    // Ranks' programs start other programs, which are none of ours.
    ::unsetenv(kMarkName);
    return AddressLayout::fixed;
  }
  if (!is_second_try && current >= 0 &&
      ::personality(static_cast<unsigned long>(current) | ADDR_NO_RANDOMIZE) >= 0) {
    exec_again(arguments, environment);
  }
  ::unsetenv(kMarkName);
  exec_at_fixed_place(arguments, environ, kMark);
  return AddressLayout::randomized;
}

}  // namespace sterna::program
