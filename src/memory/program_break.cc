// Where malloc has large pages (launch/large_pages.h) the heap of a process goes on at the begin of
// one. The system begins it at any small page, so that up to 2 MiB in front, where the first blocks
// of a program lie, would have none.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <sys/single_threaded.h>
#include <unistd.h>

#include "memory/large_pages.h"

namespace sterna::memory {
namespace {

/// Before main(), or when a library that needs us is loaded: not while others allocate. malloc
/// stands it if others take from the break, too.
[[gnu::constructor]] void align_program_break() noexcept {
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables == nullptr || !__libc_single_threaded ||
      std::string_view{tunables}.find("glibc.malloc.hugetlb=1") == std::string_view::npos) {
    return;
  }
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  const std::uintptr_t behind = -end % LargePages::kFrameBytes;
  // Addresses, no memory. If there are none left malloc will find that out.
  (void)::sbrk(static_cast<std::intptr_t>(behind));
}

}  // namespace
}  // namespace sterna::memory
