// Serving status requests without ever waiting for a client.
#include "launch/status_server.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/json_text.h"
#include "launch/report.h"
#include "launch/way_report.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kClientCountMax = 16;
constexpr std::size_t kRequestBytesMax = 64;
constexpr std::uint64_t kRetryNs = 50'000'000;    // Until a descriptor may be free again.
constexpr std::uint64_t kAnswerNs = 300'000'000;  // What the nodes have to answer us.
// And one node that is asked for itself: less than the client waits for us.
constexpr std::uint64_t kWayAnswerNs = 3'000'000'000;

}  // namespace

Result<> StatusServer::open() {
  Result<std::string> folder = status_folder();
  if (!folder) {
    return folder.error();
  }
  const std::string name = fmt::format("job-{}", ::getpid());
  Result<FileDescriptor> listener =
      runtime::listen_in_folder(folder.value(), name, static_cast<int>(kClientCountMax));
  if (!listener) {
    return listener.error();
  }
  listener_ = std::move(listener.value());
  path_ = folder.value() + "/" + name;
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
  if (clients_.size() >= kClientCountMax || !runtime::is_ours(socket.get())) {
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
  unsigned long long bytes = 0;
  char end = 0;
  if (client.request == "status\n") {
    job_.ask_status();
    wait(client);
    step();
  } else if (std::sscanf(client.request.c_str(), "move %u %u%c", &rank, &node, &end) == 3 &&
             end == '\n') {
    const bool ordered = job_.order_move(rank, node);
    answer(client, json_text(nlohmann::json{{"ordered", ordered}}));
  } else if (std::sscanf(client.request.c_str(), "why %u %u %llu%c", &rank, &node, &bytes, &end) ==
                 4 &&
             end == '\n' && bytes <= net::kExplainedBytesMax) {
    ask_way(client, rank, node, bytes);
  }
}

void StatusServer::wait(Client& client) {
  client.asked_at_ns = now_ns();
  ++waiting_count_;
  loop_.watch(client.socket.get(), 0, *this);
}

void StatusServer::refuse(Client& client, const std::string& why) {
  answer(client, json_text(nlohmann::json{{"error", why}}));
}

void StatusServer::ask_way(Client& client, std::uint32_t from_rank, std::uint32_t to_rank,
                           std::uint64_t bytes) {
  for (const std::uint32_t rank : {from_rank, to_rank}) {
    if (rank >= job_.ranks().size()) {
      refuse(client,
             fmt::format("it has no rank {}, but {} of them, from 0", rank, job_.ranks().size()));
      return;
    }
    if (job_.ranks()[rank].is_ended) {
      refuse(client, fmt::format("its rank {} has ended", rank));
      return;
    }
  }
  const std::uint32_t node = job_.ranks()[from_rank].node;
  const std::uint32_t number = job_.ask_way(node, job_.ranks()[to_rank].node, bytes);
  if (number == 0) {
    refuse(client, fmt::format("its rank {} cannot be asked: it has not begun to communicate, or "
                               "does not answer those who have asked before",
                               from_rank));
    return;
  }
  client.way = {number, from_rank, to_rank, node};
  wait(client);
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
    if (client.asked_at_ns != 0 && !client.is_answered) {
      client.way.number != 0 ? step_way(client) : step_status(client);
    }
  }
}

void StatusServer::step_status(Client& client) {
  if (nodes_have_answered(client.asked_at_ns) || now_ns() > client.asked_at_ns + kAnswerNs) {
    --waiting_count_;
    answer(client, json_text(describe_job(job_)));
  }
}

void StatusServer::step_way(Client& client) {
  const WayClient& way = client.way;
  if (const std::optional<runtime::WayAnswer> told = job_.take_way_answer(way.number)) {
    --waiting_count_;
    nlohmann::json described = describe_way(told->way);
    described["from_rank"] = way.from_rank;
    described["peer_rank"] = way.to_rank;
    described["from_node"] = way.from_node;
    answer(client, json_text(described));
  } else if (job_.nodes()[way.from_node].state == NodeRecord::State::ended) {
    --waiting_count_;
    refuse(client, fmt::format("the process of rank {} ended before it answered", way.from_rank));
  } else if (now_ns() > client.asked_at_ns + kWayAnswerNs) {
    --waiting_count_;
    refuse(client, fmt::format("the process of rank {} does not answer: it has not begun to "
                               "communicate, or computes, and answers in a call that communicates",
                               way.from_rank));
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
  if (const Client& client = clients_.at(fd); client.asked_at_ns != 0 && !client.is_answered) {
    --waiting_count_;
  }
  loop_.unwatch(fd);
  clients_.erase(fd);
}

}  // namespace sterna::launch
