// Pages of fresh stacks: those that trap, one by one and for many slots in one system call, and
// those that are used first, for many slots only.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/system_file.h"
#include "memory/iso_stacks.h"

namespace sterna::memory {
namespace {

constexpr int kAdviseGuardInstall = 102;  // MADV_GUARD_INSTALL, Linux 6.13.
constexpr int kAdviseGuardRemove = 103;
constexpr int kSelf = -10000;  // PIDFD_SELF: before about Linux 6.15 no descriptor, so EBADF.

/// Advises of one page in each of the first slots of `slots`, at `offset` in it. How many it did:
/// none where there is but one, for which a call of its own is as good.
std::size_t advise_at_once(Extent slots, std::size_t slot_bytes, std::size_t offset,
                           int advice) noexcept {
  std::array<iovec, kGuardBatchMax> pages;
  const std::size_t count = std::min(slots.bytes / slot_bytes, pages.size());
  if (count < 2) {
    return 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    pages[i] = {reinterpret_cast<void*>(slots.base + i * slot_bytes + offset), kPageBytes};
  }
  const long done = ::syscall(SYS_process_madvise, kSelf, pages.data(), count, advice, 0);
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

bool has_one_memory_node() {
  // As "0-1,4"; not there in a kernel that knows of one memory only.
  const std::optional<std::string> nodes = first_line_of("/sys/devices/system/node/has_memory");
  return !nodes || nodes->find_first_of("-,") == std::string::npos;
}

void touch_slots(Extent slots, std::size_t slot_bytes) noexcept {
  // What is not done, for want of memory or in an older kernel, is left to page faults.
  static_cast<void>(
      advise_at_once(slots, slot_bytes, slot_bytes - kPageBytes, kAdvisePopulateWrite));
}

Result<> guard_slots(Extent slots, std::size_t slot_bytes) {
  std::size_t i = advise_at_once(slots, slot_bytes, 0, kAdviseGuardInstall);
  for (; i < slots.bytes / slot_bytes; ++i) {
    auto* const low = reinterpret_cast<std::byte*>(slots.base + i * slot_bytes);
    if (Result<> guarded = add_stack_guard(low, kPageBytes); !guarded) {
      return guarded;
    }
  }
  return Done{};
}

}  // namespace sterna::memory
