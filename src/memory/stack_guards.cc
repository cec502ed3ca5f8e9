// Pages that trap, below stacks: one by one, and for many slots in one system call.
#include <algorithm>
#include <array>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/syscall.h"
#include "memory/iso_stacks.h"

namespace sterna::memory {
namespace {

constexpr int kAdviseGuardInstall = 102;  // MADV_GUARD_INSTALL, Linux 6.13.
constexpr int kAdviseGuardRemove = 103;
constexpr int kSelf = -10000;  // PIDFD_SELF: before about Linux 6.15 no descriptor, so EBADF.

/// Marks the lowest pages of the first slots of `slots`, each of `slot_bytes`. How many it did.
std::size_t guard_at_once(Extent slots, std::size_t slot_bytes) noexcept {
  std::array<iovec, kGuardBatchMax> pages;
  const std::size_t count = std::min(slots.bytes / slot_bytes, pages.size());
  if (count < 2) {
    return 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    pages[i] = {reinterpret_cast<void*>(slots.base + i * slot_bytes), kPageBytes};
  }
  const long done =
      ::syscall(SYS_process_madvise, kSelf, pages.data(), count, kAdviseGuardInstall, 0);
  return done > 0 ? static_cast<std::size_t>(done) / kPageBytes : 0;
}

}  // namespace

Result<> add_stack_guard(std::byte* low, std::size_t bytes) {
  // A guard mark costs no mapping; mprotect splits one in two and ends at vm.max_map_count, about
  // 32,000 stacks.
  if (::madvise(low, bytes, kAdviseGuardInstall) == 0 || ::mprotect(low, bytes, PROT_NONE) == 0) {
    return Done{};
  }
  return system_error("cannot guard a thread stack (raise vm.max_map_count)", last_error_number());
}

void remove_stack_guard(std::byte* low, std::size_t bytes) noexcept {
  // Both, since either may have been used; what is not there is no harm.
  (void)::madvise(low, bytes, kAdviseGuardRemove);
  (void)::mprotect(low, bytes, PROT_READ | PROT_WRITE);
}

Result<> guard_slots(Extent slots, std::size_t slot_bytes) {
  for (std::size_t i = guard_at_once(slots, slot_bytes); i < slots.bytes / slot_bytes; ++i) {
    auto* const low = reinterpret_cast<std::byte*>(slots.base + i * slot_bytes);
    if (Result<> guarded = add_stack_guard(low, kPageBytes); !guarded) {
      return guarded;
    }
  }
  return Done{};
}

}  // namespace sterna::memory
