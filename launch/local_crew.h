// The processes of a job on this machine.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "launch/crew.h"
#include "launch/spawn.h"

namespace sterna::launch {

class LocalCrew final : public Crew, private DescriptorHandler, private ChildHandler {
 public:
  struct Options {
    int input_fd = -1;  // Handed to the process that takes input; -1: give_input is used.
  };

  /// `loop` and `events` live longer.
  LocalCrew(Loop& loop, CrewEvents& events, CrewOrder order, Options options);
  ~LocalCrew() override;

  Result<> start() override;
  void send(std::uint32_t node, const Frame& frame) override;
  void signal(int number) override;
  void give_input(std::span<const std::byte> bytes) override;
  [[nodiscard]] std::size_t input_bytes_waiting() const noexcept override { return input_.bytes(); }
  void let_output_flow(bool flows) override;
  [[nodiscard]] bool is_over() const noexcept override;
  void leave() override {}
  [[nodiscard]] bool has_left() const noexcept override { return true; }
  void close() override;

 private:
  struct Process {
    ProcessOrder order;
    pid_t pid = -1;  // -1: not started, or ended.
    FileDescriptor control;
    FrameReader reader;
    ByteSender sender;
    FileDescriptor output;
    FileDescriptor error;
  };

  Result<> share_memory();
  Result<> start_process(Process& process);
  void on_ready(int fd, short events) override;
  void on_child_end(pid_t pid, const ProcessEnd& end) override;
  void read_control(Process& process);
  /// False: there is nothing more to read now.
  bool read_output(Process& process, FileDescriptor& from, OutputStream stream);
  void greet(Process& process);
  void watch(Process& process);
  void write_input();
  void forget(FileDescriptor& fd);

  Loop& loop_;
  CrewEvents& events_;
  const std::string host_;
  const std::uint64_t segment_bytes_;
  const Options options_;
  std::optional<Guardian> guardian_;
  FileDescriptor segments_;
  std::vector<FileDescriptor> bells_;
  net::HostShare share_;
  std::vector<int> shared_fds_;
  std::vector<Process> processes_;
  std::unordered_map<std::uint32_t, std::size_t> index_of_node_;
  std::unordered_map<int, std::size_t> index_of_fd_;
  FileDescriptor input_writer_;
  ByteSender input_;
  bool is_input_refused_ = false;  // The process has closed it, or ended: the rest is dropped.
  bool input_ends_ = false;
  bool output_flows_ = true;
};

}  // namespace sterna::launch
