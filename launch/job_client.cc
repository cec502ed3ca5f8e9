// One connection a question.
#include "launch/job_client.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna::launch {
namespace {

constexpr int kWaitMs = 5000;  // For one answer; a job that is stopped gives none.

}  // namespace

std::optional<std::string> ask(const std::string& path, const std::string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::nullopt;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Or connect() waits for ever at a stopped job that others have asked before.
  FileDescriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (last_error_number() == ECONNREFUSED) {
      ::unlink(path.c_str());  // Its job was killed.
    }
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

std::vector<std::string> job_sockets(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code unreadable;  // Then there are none.
  for (const auto& entry : std::filesystem::directory_iterator{folder, unreadable}) {
    if (entry.path().filename().string().starts_with("job-")) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string job_socket(const std::string& folder, unsigned job) {
  return fmt::format("{}/job-{}", folder, job);
}

}  // namespace sterna::launch
