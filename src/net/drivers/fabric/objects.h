// What the files of an Endpoint share: closing of libfabric's objects.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

namespace sterna::net::fabric::fi {

/// Closes what is open.
template <typename Fid>
void close(Fid*& what) noexcept {
  if (what != nullptr) {
    ::fi_close(&what->fid);
    what = nullptr;
  }
}

}  // namespace sterna::net::fabric::fi
