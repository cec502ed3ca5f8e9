// One connection a question.
#include "launch/job_client.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/syscall.h"
#include "launch/report.h"

namespace sterna::launch {
namespace {

constexpr std::string_view kJob = "job-";
constexpr std::string_view kProgram = "program-";
constexpr int kWaitMs = 5000;  // For one answer; a job that is stopped gives none.

/// Not open: nobody can be asked there now, and what a killed job has left is removed.
FileDescriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return {};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Or connect() waits for ever at a stopped job that others have asked before.
  FileDescriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (last_error_number() == ECONNREFUSED) {
      ::unlink(path.c_str());
    }
    return {};
  }
  return socket;
}

}  // namespace

std::optional<std::string> ask(const std::string& path, const std::string& request) {
  const FileDescriptor socket = connect_to(path);
  if (!socket.is_open()) {
    return std::nullopt;
  }
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return std::nullopt;
  }
  std::string answer;
  std::array<char, 65536> bytes;
  for (;;) {
    pollfd descriptor{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&descriptor, 1, kWaitMs) <= 0) {
      return std::nullopt;
    }
    const long count =
        system_call([&] { return ::read(socket.get(), bytes.data(), bytes.size()); });
    if (count <= 0) {
      break;
    }
    answer.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return answer.empty() ? std::nullopt : std::optional{answer};
}

nlohmann::json ask_status(const std::string& path) {
  const std::optional<std::string> answer = ask(path, "status\n");
  if (!answer) {
    return {};
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.starts_with(kProgram)) {
    return describe_program(std::atoi(name.c_str() + kProgram.size()), *answer);
  }
  return nlohmann::json::parse(*answer, nullptr, false);
}

std::vector<std::string> job_sockets(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code unreadable;  // Then there are none.
  for (const auto& entry : std::filesystem::directory_iterator{folder, unreadable}) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kJob) || name.starts_with(kProgram)) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string job_socket(const std::string& folder, unsigned job) {
  const std::string program = fmt::format("{}/{}{}", folder, kProgram, job);
  // One that was killed may have had the number of this job before, and left its socket: that goes.
  (void)connect_to(program);
  return ::access(program.c_str(), F_OK) == 0 ? program : fmt::format("{}/{}{}", folder, kJob, job);
}

}  // namespace sterna::launch
