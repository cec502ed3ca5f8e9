// Asking running jobs of this user: the other end of launch/status_server.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sterna::launch {

/// The one line that the job at `path` answers to a request; nothing if it does not within 2 s.
/// Removes the socket of a job that was killed.
[[nodiscard]] std::optional<std::string> ask(const std::string& path, const std::string& request);

/// Sockets of jobs in status_folder(), ordered.
[[nodiscard]] std::vector<std::string> job_sockets(const std::string& folder);
[[nodiscard]] std::string job_socket(const std::string& folder, unsigned job);

}  // namespace sterna::launch
