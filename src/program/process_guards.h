// What code checks its own stack and its jump buffers against. Where the ABI keeps that in the
// block of the thread, a rank takes its own along; where it is a variable of the process, all nodes
// of a job need the same.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace sterna::program {

/// Derives the guards of this process from `secret`, which all nodes have and nobody else; nothing
/// where they are the threads'. Before other kernel threads are created, on a stack whose functions
/// check no guard, or never return. From then on the process ends by _exit(): the handlers that
/// libraries have registered for exit() are hidden under the old guard.
[[nodiscard]] Result<> share_guards(std::span<const std::byte> secret) noexcept;

}  // namespace sterna::program
