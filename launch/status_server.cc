// Serving status requests without ever waiting for a client.
#include "launch/status_server.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/report.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kClientCountMax = 16;
constexpr std::size_t kRequestBytesMax = 64;
constexpr std::uint64_t kRetryNs = 50'000'000;    // Until a descriptor may be free again.
constexpr std::uint64_t kAnswerNs = 300'000'000;  // What the nodes have to answer us.

bool is_ours(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
         (credentials.uid == ::getuid() || credentials.uid == 0);
}

}  // namespace

Result<std::string> status_folder() {
  const char* const runtime_folder = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime_folder != nullptr && *runtime_folder == '/'
                                 ? std::string{runtime_folder} + "/sterna"
                                 : fmt::format("/tmp/sterna-{}", ::getuid());
  struct stat status {};
  static_cast<void>(::mkdir(folder.c_str(), 0700));
  if (::lstat(folder.c_str(), &status) != 0) {
    return system_error("cannot make the folder " + folder, last_error_number());
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid() || (status.st_mode & 0077) != 0) {
    return Error{Errc::refused, folder + " is not a folder of ours alone (mode 0700)"};
  }
  return folder;
}

Result<> StatusServer::open() {
  Result<std::string> folder = status_folder();
  if (!folder) {
    return folder.error();
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("{}/job-{}", folder.value(), ::getpid());
  if (path.size() >= sizeof address.sun_path) {
    return Error{Errc::invalid_argument, path + " is too long for a socket"};
  }
  listener_ = FileDescriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!listener_.is_open()) {
    return system_error("cannot make a socket", last_error_number());
  }
  // Whoever asks at a socket that nobody listens at yet takes it for that of a killed job, and
  // removes it.
  const std::string unready = fmt::format("{}/new-{}", folder.value(), ::getpid());
  std::memcpy(address.sun_path, unready.c_str(), unready.size() + 1);  // As long as the other.
  ::unlink(unready.c_str());  // Of a job long gone, which had our number.
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), static_cast<int>(kClientCountMax)) != 0 ||
      ::rename(unready.c_str(), path.c_str()) != 0) {
    return system_error("cannot listen at " + path, last_error_number());
  }
  path_ = path;
  loop_.watch(listener_.get(), POLLIN, *this);
  return Done{};
}

StatusServer::~StatusServer() {
  if (!path_.empty()) {
    ::unlink(path_.c_str());
    loop_.unwatch(listener_.get());
  }
  for (const auto& [fd, client] : clients_) {
    loop_.unwatch(fd);
  }
}

void StatusServer::on_ready(int fd, short events) {
  if (fd == listener_.get()) {
    accept_client();
    return;
  }
  const auto found = clients_.find(fd);
  if (found == clients_.end()) {
    return;
  }
  Client& client = found->second;
  if (client.is_answered) {
    if ((events & (POLLERR | POLLHUP)) != 0 || !client.answer.write_to(fd) ||
        client.answer.is_empty()) {
      drop(fd);
    }
    return;
  }
  read_request(fd, client);
}

void StatusServer::accept_client() {
  FileDescriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket.is_open()) {
    const int error = last_error_number();
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      loop_.watch(listener_.get(), 0, *this);
      listen_again_ns_ = now_ns() + kRetryNs;
    }
    return;
  }
  if (clients_.size() >= kClientCountMax || !is_ours(socket.get())) {
    return;  // Closes it.
  }
  const int fd = socket.get();
  clients_[fd].socket = std::move(socket);
  loop_.watch(fd, POLLIN, *this);
}

void StatusServer::read_request(int fd, Client& client) {
  std::array<char, kRequestBytesMax> bytes{};
  const long count = system_call([&] { return ::read(fd, bytes.data(), bytes.size()); });
  if (count == -EAGAIN) {
    return;
  }
  if (count > 0) {
    client.request.append(bytes.data(), static_cast<std::size_t>(count));
  }
  const bool is_whole = client.request.ends_with('\n');
  if (count <= 0 || client.request.size() > kRequestBytesMax ||
      (!is_whole && client.request.find('\n') != std::string::npos)) {
    drop(fd);
  } else if (is_whole) {
    obey(client);
    if (!client.is_answered && client.asked_at_ns == 0) {
      drop(fd);  // It said nothing that we know.
    }
  }
}

void StatusServer::obey(Client& client) {
  unsigned rank = 0;
  unsigned node = 0;
  char end = 0;
  if (client.request == "status\n") {
    job_.ask_status();
    client.asked_at_ns = now_ns();
    ++waiting_count_;
    loop_.watch(client.socket.get(), 0, *this);
    step();
  } else if (std::sscanf(client.request.c_str(), "move %u %u%c", &rank, &node, &end) == 3 &&
             end == '\n') {
    const bool ordered = job_.order_move(rank, node);
    answer(client, nlohmann::json{{"ordered", ordered}}.dump());
  }
}

bool StatusServer::nodes_have_answered(std::uint64_t since_ns) const {
  for (const NodeRecord& node : job_.nodes()) {
    if (node.state == NodeRecord::State::member && node.status_at_ns < since_ns) {
      return false;
    }
  }
  return true;
}

void StatusServer::step() {
  if (listen_again_ns_ != 0 && now_ns() >= listen_again_ns_) {
    listen_again_ns_ = 0;
    loop_.watch(listener_.get(), POLLIN, *this);
  }
  if (waiting_count_ == 0) {
    return;
  }
  for (auto& [fd, client] : clients_) {
    if (client.asked_at_ns != 0 && !client.is_answered &&
        (nodes_have_answered(client.asked_at_ns) || now_ns() > client.asked_at_ns + kAnswerNs)) {
      --waiting_count_;
      answer(client, describe_job(job_).dump());
    }
  }
}

void StatusServer::answer(Client& client, const std::string& text) {
  std::vector<std::byte> bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.data(), text.size());
  bytes.back() = std::byte{'\n'};
  client.answer.push(std::move(bytes));
  client.is_answered = true;
  loop_.watch(client.socket.get(), POLLOUT, *this);
}

void StatusServer::drop(int fd) {
  loop_.unwatch(fd);
  clients_.erase(fd);
}

}  // namespace sterna::launch
