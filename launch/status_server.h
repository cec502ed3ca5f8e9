// The socket at which `sterna ps` finds a running job and asks how it goes.
//
// One socket a job, in a folder that only its user can enter. A client sends one line, "status",
// "move RANK NODE" or "why FROM_RANK TO_RANK BYTES", and gets one line of JSON. Whatever else is
// sent is answered by a closed connection.
#pragma once

#include <string>
#include <unordered_map>

#include "launch/job.h"
#include "runtime/status_folder.h"

namespace sterna::launch {

using runtime::status_folder;

class StatusServer final : private DescriptorHandler {
 public:
  StatusServer(Loop& loop, Job& job) : loop_{loop}, job_{job} {}
  ~StatusServer();

  Result<> open();
  /// Answers those who wait, when the nodes have answered or have had their time.
  void step();
  /// Somebody waits for an answer, or to be let in: step() must be called soon.
  [[nodiscard]] bool is_busy() const noexcept {
    return waiting_count_ > 0 || listen_again_ns_ != 0;
  }

 private:
  struct WayClient {
    std::uint32_t number = 0;
    std::uint32_t from_rank = 0;
    std::uint32_t to_rank = 0;
    std::uint32_t from_node = 0;
  };
  struct Client {
    FileDescriptor socket;
    std::string request;
    ByteSender answer;
    std::uint64_t asked_at_ns = 0;  // Not 0: waits for the nodes.
    WayClient way;                  // With a number: waits for the answer of one.
    bool is_answered = false;
  };

  void on_ready(int fd, short events) override;
  void accept_client();
  void read_request(int fd, Client& client);
  void obey(Client& client);
  void wait(Client& client);
  void ask_way(Client& client, std::uint32_t from_rank, std::uint32_t to_rank, std::uint64_t bytes);
  void step_status(Client& client);
  void step_way(Client& client);
  void refuse(Client& client, const std::string& why);
  void answer(Client& client, const std::string& text);
  void drop(int fd);
  [[nodiscard]] bool nodes_have_answered(std::uint64_t since_ns) const;

  Loop& loop_;
  Job& job_;
  FileDescriptor listener_;
  std::string path_;
  std::unordered_map<int, Client> clients_;
  std::size_t waiting_count_ = 0;
  // Not 0: no descriptor was left for a client, and none is let in before; it stays in the queue of
  // the system, which would else wake us without end.
  std::uint64_t listen_again_ns_ = 0;
};

}  // namespace sterna::launch
