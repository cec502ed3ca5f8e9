// Where running jobs are found: the folder of their sockets, which only their user can enter.
#pragma once

#include <string>

#include "base/result.h"
#include "base/syscall.h"

namespace sterna::runtime {

/// $XDG_RUNTIME_DIR/sterna, or where that cannot be made /tmp/sterna-<uid>; made if need be, mode
/// 0700, and ours.
[[nodiscard]] Result<std::string> status_folder();

/// Listens at <folder>/<name>; the descriptor is closed on exec. The socket appears there when it
/// is listened at, not before: whoever asks at one where nobody listens takes it for that of a job
/// that was killed, and removes it.
[[nodiscard]] Result<FileDescriptor> listen_in_folder(const std::string& folder,
                                                      const std::string& name, int client_count);

/// The other end of a connected socket is of our user, or of root.
[[nodiscard]] bool is_ours(int socket) noexcept;

}  // namespace sterna::runtime
