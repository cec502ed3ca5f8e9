// What the layer that runs programs as ranks knows of their descriptors: io.h calls the kernel
// itself, past its shims.
#pragma once

#include <atomic>

#include "memory/rank_slot.h"

namespace sterna::runtime::capi {

struct RankDescriptors {
  /// What stands for one of the streams 0, 1 and 2 of the rank; any other is itself.
  int (*real)(memory::RankSlot& slot, int fd) noexcept;
  /// It holds the rank where it is, until the rank closes it.
  void (*note)(memory::RankSlot& slot, int fd, const char* what, const char* name) noexcept;
};

/// Null: no mobile ranks. Set once, at the start of a node.
inline constinit std::atomic<const RankDescriptors*> rank_descriptors{nullptr};

}  // namespace sterna::runtime::capi
