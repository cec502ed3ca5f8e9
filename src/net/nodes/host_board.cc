// See host_board.h.
#include "net/nodes/host_board.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"

namespace sterna::net {

std::byte* map_host_board(const HostShare& host) noexcept {
  struct stat status {};
  const std::uint64_t begin = host.segment_bytes * host.nodes.size();
  // A mapping beyond the end of the file would map, and kill us at the first touch.
  if (host.segment_fd < 0 || system_call([&] { return ::fstat(host.segment_fd, &status); }) < 0 ||
      static_cast<std::uint64_t>(status.st_size) < begin + kHostBoardBytes) {
    return nullptr;
  }
  void* const address = ::mmap(nullptr, kHostBoardBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                               host.segment_fd, static_cast<off_t>(begin));
  return address != MAP_FAILED ? static_cast<std::byte*>(address) : nullptr;
}

}  // namespace sterna::net
