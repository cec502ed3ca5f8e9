// The processes of a job on one host: how they are ordered, and what is heard of them. A LocalCrew
// starts them on this machine, a RemoteCrew has an agent do it over ssh.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/frame_stream.h"
#include "launch/loop.h"
#include "runtime/control_protocol.h"

namespace sterna::launch {

using runtime::OutputStream;

/// One process to start. In process mode it is a rank, in node mode a sterna-node.
struct ProcessOrder {
  std::uint32_t node = 0;
  std::vector<std::string> arguments;    // argv; argv[0] is looked up in PATH if it has no slash.
  std::vector<std::string> environment;  // All of it, NAME=value.
  std::string directory;                 // Empty: where we are.
  bool takes_input = false;              // Standard input of the job is its own; else /dev/null.
};

struct CrewOrder {
  std::string host;  // As the user wrote it.
  std::vector<ProcessOrder> processes;
  std::uint64_t segment_bytes = 0;  // Shared memory for each of them.
};

/// What a crew tells the job. A handler may call the crew, but not destroy it.
class CrewEvents {
 public:
  virtual void on_frame(std::uint32_t node, FrameHeader header,
                        std::span<const std::byte> body) = 0;
  virtual void on_output(std::uint32_t node, OutputStream stream,
                         std::span<const std::byte> bytes) = 0;
  virtual void on_started(std::uint32_t node, std::uint32_t pid) = 0;
  /// After its last frame; output may still follow.
  virtual void on_process_end(std::uint32_t node, const ProcessEnd& end) = 0;
  /// The process never ran the program; `text` says why. on_process_end follows.
  virtual void on_start_failed(std::uint32_t node, std::string_view text) = 0;
  /// The way to the host is broken; on_process_end follows for all that ran there.
  virtual void on_crew_lost(std::string_view host, std::string_view text) = 0;

 protected:
  ~CrewEvents() = default;
};

class Crew {
 public:
  virtual ~Crew() = default;
  /// Starts all processes. What goes wrong with a single one is told by on_start_failed.
  virtual Result<> start() = 0;
  virtual void send(std::uint32_t node, const Frame& frame) = 0;
  /// To all processes and what they started.
  virtual void signal(int number) = 0;
  /// Bytes for the process that takes input; empty: the end of the input.
  virtual void give_input(std::span<const std::byte> bytes) = 0;
  /// Bytes given as input and not yet taken.
  [[nodiscard]] virtual std::size_t input_bytes_waiting() const noexcept = 0;
  /// While false, nothing is read that could be output.
  virtual void let_output_flow(bool flows) = 0;
  /// All processes have ended, and all of their output has been told.
  [[nodiscard]] virtual bool is_over() const noexcept = 0;
  /// Nothing more is wanted: another host is told so, to clean up. Does not wait.
  virtual void leave() = 0;
  /// After leave(): the other host has done so, or there is none.
  [[nodiscard]] virtual bool has_left() const noexcept = 0;
  /// Kills what is left, closes everything. Does not wait.
  virtual void close() = 0;
};

}  // namespace sterna::launch
