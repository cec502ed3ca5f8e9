// libfabric, opened when it is asked for: a program that does not name the driver fabric never
// loads it, and runs where it is not installed.
#pragma once

#include <string>

#include <rdma/fabric.h>

#include "base/result.h"

namespace sterna::net::fabric {

/// The functions that lie in the library; all others are inline in its headers.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  /// "<what>: <words of the library>"; `error` as its functions return it, negated.
  [[nodiscard]] Error failure(const std::string& what, long error) const;
};

/// Loaded once, and never unloaded: it has kernel threads. Fails with unsupported.
[[nodiscard]] Result<const Library*> load_library() noexcept;

}  // namespace sterna::net::fabric
