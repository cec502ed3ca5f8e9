// Files in memory (memfd_create). To the system they are files: `ulimit -n` counts them, `ulimit
// -f` bounds their size, and beyond that a change of size is answered by SIGXFSZ.
#pragma once

#include <cstdint>

#include "base/syscall.h"

namespace sterna {

/// A file in memory of `bytes` bytes, all zero, which exec closes. Of the two limits the hard one
/// counts: the soft one for descriptors is raised for good, that for sizes for a moment, so no
/// other thread calls this meanwhile. Errors name the limit.
[[nodiscard]] Result<FileDescriptor> create_memory_file(const char* name,
                                                        std::uint64_t bytes) noexcept;

}  // namespace sterna
