// Asking running jobs of this user: the other end of launch/status_server.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace sterna::launch {

/// The one line that the job at `path` answers to a request; nothing if it does not within 5 s.
/// Removes the socket of a job that was killed.
[[nodiscard]] std::optional<std::string> ask(const std::string& path, const std::string& request);

/// What the job at `path` says of itself, as describe_job(); no object if it does not answer.
[[nodiscard]] nlohmann::json ask_status(const std::string& path);

/// Sockets of jobs in status_folder(), ordered; then those of programs without a launcher.
[[nodiscard]] std::vector<std::string> job_sockets(const std::string& folder);
/// That of a program of that number, if there is one; else that of the job. Removes what a program
/// that was killed has left.
[[nodiscard]] std::string job_socket(const std::string& folder, unsigned job);

}  // namespace sterna::launch
