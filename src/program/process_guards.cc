// The guards are variables of the dynamic loader, which it protects after it has set them.
#include "program/process_guards.h"

#include <cstdint>

#include <dlfcn.h>
#include <sys/mman.h>

#include "base/elf_machine.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "memory/layout.h"

namespace sterna::program {
namespace {

struct Guard {
  const char* name;
  const char* version;
  std::uint64_t seed;
  std::uint64_t mask;
};

// A string that overruns a buffer cannot write the lowest byte of a stack's guard, zero, and go on.
constexpr Guard kGuards[] = {
    {"__stack_chk_guard", "GLIBC_2.17", 1, ~std::uint64_t{0xff}},
    {"__pointer_chk_guard", "GLIBC_PRIVATE", 2, ~std::uint64_t{0}},
};

Result<> set_guard(const Guard& guard, std::uint64_t value) {
  void* const place = ::dlvsym(RTLD_DEFAULT, guard.name, guard.version);
  if (place == nullptr) {
    return Error{Errc::unsupported, std::string{"this C library has no "} + guard.name +
                                        ": ranks need glibc 2.31 to 2.41 (run ldd --version)"};
  }
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(place);
  auto* const page = reinterpret_cast<void*>(address & ~(memory::kPageBytes - 1));
  if (::mprotect(page, memory::kPageBytes, PROT_READ | PROT_WRITE) != 0) {
    return system_error(std::string{"cannot write "} + guard.name, last_error_number());
  }
  *static_cast<volatile std::uint64_t*>(place) = value;
  if (::mprotect(page, memory::kPageBytes, PROT_READ) != 0) {
    return system_error(std::string{"cannot protect "} + guard.name, last_error_number());
  }
  return Done{};
}

}  // namespace

Result<> share_guards(std::span<const std::byte> secret) noexcept {
  if constexpr (elf_machine::kGuardsAreOfProcess) {
    for (const Guard& guard : kGuards) {
      Result<> done = set_guard(guard, hash_bytes(secret, guard.seed) & guard.mask);
      if (!done) {
        return done;
      }
    }
  }
  return Done{};
}

}  // namespace sterna::program
