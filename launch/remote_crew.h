// The processes of a job on another machine: an agent there, reached by ssh, does what a LocalCrew
// does here.
#pragma once

#include <optional>
#include <unordered_set>

#include "launch/agent_protocol.h"
#include "launch/crew.h"
#include "launch/spawn.h"

namespace sterna::launch {

/// The words that give a command to a shell on `host`, but for that command: `ssh` may have
/// options.
[[nodiscard]] std::vector<std::string> remote_command(const std::string& ssh,
                                                      const std::string& host);

class RemoteCrew final : public Crew, private DescriptorHandler, private ChildHandler {
 public:
  /// `ssh` is a command and its options, separated by blanks.
  RemoteCrew(Loop& loop, CrewEvents& events, CrewOrder order, std::string ssh);
  ~RemoteCrew() override;

  Result<> start() override;
  void send(std::uint32_t node, const Frame& frame) override;
  void signal(int number) override;
  void give_input(std::span<const std::byte> bytes) override;
  [[nodiscard]] std::size_t input_bytes_waiting() const noexcept override {
    return input_given_ - input_taken_;
  }
  void let_output_flow(bool flows) override;
  [[nodiscard]] bool is_over() const noexcept override { return is_over_ || pid_ < 0; }
  void leave() override;
  [[nodiscard]] bool has_left() const noexcept override { return pid_ < 0; }
  void close() override;

 private:
  void on_ready(int fd, short events) override;
  void on_child_end(pid_t pid, const ProcessEnd& end) override;
  bool handle(const Relay& relay);
  void tell(const Frame& frame);
  void write();
  void lose(const std::string& why);

  Loop& loop_;
  CrewEvents& events_;
  const CrewOrder order_;
  const std::string ssh_;
  std::optional<Guardian> guardian_;
  pid_t pid_ = -1;  // Of ssh.
  FileDescriptor to_agent_;
  FileDescriptor from_agent_;
  FrameReader reader_;
  ByteSender sender_;
  std::size_t input_given_ = 0;  // Bytes, to the agent.
  std::size_t input_taken_ = 0;  // Of them, as it says.
  std::unordered_set<std::uint32_t> running_;  // Nodes whose end has not been told.
  bool is_over_ = false;
  bool is_closing_ = false;
};

}  // namespace sterna::launch
