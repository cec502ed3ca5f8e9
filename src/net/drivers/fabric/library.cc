// Loads libfabric.
#include "net/drivers/fabric/library.h"

#include <cstdlib>

#include <dlfcn.h>

#include "base/annotate.h"
#include "base/kernel_lock.h"

namespace sterna::net::fabric {
namespace {

constinit KernelLock g_lock;
// Complete once fabric is set; constant from then on.
constinit Library g_library STERNA_GUARDED_BY(g_lock);

template <typename Function>
bool find(void* handle, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

Error Library::failure(const std::string& what, long error) const {
  return {Errc::system, what + ": " + strerror(static_cast<int>(-error))};
}

Result<const Library*> load_library() noexcept {
  const KernelGuard guard{g_lock};
  if (g_library.fabric != nullptr) {
    return &g_library;
  }
  // We register few large buffers and keep them: a cache of registrations is of no use, and to keep
  // it right it would put itself into mmap and munmap of the process.
  ::setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
  // The provider sockets looks at heads of messages before it takes them from the kernel. Of a head
  // that ends a full receive buffer it sees a part, for ever: the buffer cannot be freed for the
  // rest. So it is to be larger than what the kernel keeps in one piece; Endpoint::
  // bytes_under_way_max() does the other half.
  ::setenv("FI_SOCKETS_MAX_BUF_SZ", "4194304", 0);
  void* const handle = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{Errc::unsupported, std::string{"libfabric is not installed: "} + ::dlerror()};
  }
  Library found;
  if (!find(handle, "fi_getinfo", found.getinfo) || !find(handle, "fi_freeinfo", found.freeinfo) ||
      !find(handle, "fi_dupinfo", found.dupinfo) || !find(handle, "fi_strerror", found.strerror) ||
      !find(handle, "fi_fabric", found.fabric)) {
    return Error{Errc::unsupported, "the libfabric that is installed lacks functions"};
  }
  g_library = found;
  return &g_library;
}

}  // namespace sterna::net::fabric
