// The folder of sockets, and a socket in it.
#include "runtime/status_folder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace sterna::runtime {

namespace {

Result<std::string> folder_of_ours(const std::string& folder) {
  struct stat status{};
  static_cast<void>(::mkdir(folder.c_str(), 0700));
  if (::lstat(folder.c_str(), &status) != 0) {
    return system_error("cannot make the folder " + folder, last_error_number());
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid() || (status.st_mode & 0077) != 0) {
    return Error{Errc::refused, folder + " is not a folder of ours alone (mode 0700)"};
  }
  return folder;
}

}  // namespace

Result<std::string> status_folder() {
  const char* const runtime_folder = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_folder != nullptr && *runtime_folder == '/') {
    Result<std::string> folder = folder_of_ours(std::string{runtime_folder} + "/sterna");
    if (folder || folder.error().code == Errc::refused) {
      return folder;
    }  // The variable is of another session, or names what is not there: as if it were not set.
  }
  return folder_of_ours(fmt::format("/tmp/sterna-{}", ::getuid()));
}

Result<FileDescriptor> listen_in_folder(const std::string& folder, const std::string& name,
                                        int client_count) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/" + name;
  const std::string unready = fmt::format("{}/new-{}", folder, ::getpid());
  if (std::max(path.size(), unready.size()) >= sizeof address.sun_path) {
    return Error{Errc::invalid_argument, path + " is too long for a socket"};
  }
  FileDescriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!listener.is_open()) {
    return system_error("cannot make a socket", last_error_number());
  }
  std::memcpy(address.sun_path, unready.c_str(), unready.size() + 1);
  ::unlink(unready.c_str());  // Of a job long gone, which had our number.
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), client_count) != 0 || ::rename(unready.c_str(), path.c_str()) != 0) {
    return system_error("cannot listen at " + path, last_error_number());
  }
  return listener;
}

bool is_ours(int socket) noexcept {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
         (credentials.uid == ::getuid() || credentials.uid == 0);
}

}  // namespace sterna::runtime
