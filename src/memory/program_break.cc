// Where malloc has large pages (launch/large_pages.h) the blocks of a program begin at one. The
// system begins the heap at any small page, and malloc takes 2 MiB of it at once for what libraries
// allocate when they are loaded: the first blocks of a program would lie behind those, in front of
// the first large page.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "memory/large_pages.h"

namespace sterna::memory {
namespace {

// What is left of the heap where malloc has begun it, but for the end of a block.
constexpr std::size_t kEndBytes = 128;
constexpr std::size_t kGrowthBytes = 1 << 20;  // More than libraries have given back.

std::uintptr_t program_break() noexcept {
  return reinterpret_cast<std::uintptr_t>(::sbrk(0));
}

/// Before main(), or when a library that needs us is loaded: not while others allocate. malloc
/// stands it if others take from the break, too.
[[gnu::constructor]] void align_program_break() noexcept {
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables == nullptr || !__libc_single_threaded ||
      std::string_view{tunables}.find("glibc.malloc.hugetlb=1") == std::string_view::npos) {
    return;
  }
  // Addresses, no memory: nobody touches the block, which stays for good. Unless the library comes
  // late, when the end of the heap has been in use.
  const std::size_t left = ::mallinfo2().keepcost;
  if (left > LargePages::kFrameBytes) {
    return;
  }
  if (left > 2 * kEndBytes) {
    void* volatile kept = std::malloc(left - kEndBytes);  // Else compilers leave it out.
    static_cast<void>(kept);
  }
  const std::uintptr_t to_begin = -program_break() % LargePages::kFrameBytes;
  (void)::sbrk(static_cast<std::intptr_t>(to_begin));  // If it fails malloc will find that out.
  const std::uintptr_t begin = program_break();
  void* volatile first = std::malloc(kGrowthBytes);  // Has the heap go on.
  std::free(first);
  // malloc has advised all but a page, since the break was not where it had left it: one more
  // mapping, and no large page across it.
  (void)::madvise(reinterpret_cast<void*>(begin), program_break() - begin, MADV_HUGEPAGE);
}

}  // namespace
}  // namespace sterna::memory
