// A running job: what is known of its nodes and ranks, and the one decision how it ends.
//
// A job is running until its verdict falls: all ranks ended well, or a first failure, which is told
// once and ends everything: SIGTERM, then SIGKILL after a grace time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "launch/crew.h"
#include "launch/line_output.h"
#include "launch/plan.h"

namespace sterna::launch {

/// What is known of a rank.
struct RankRecord {
  std::uint32_t node = 0;
  bool is_initialized = false;
  bool is_finalized = false;
  bool is_ended = false;
  int exit_code = 0;
  std::uint32_t moves = 0;
};

struct NodeRecord {
  enum class State : std::uint8_t {
    waiting,  // Not started yet.
    started,  // Runs; has not spoken.
    member,   // Has said hello: it uses MPI, or is a sterna-node.
    ended,
  };
  State state = State::waiting;
  std::uint32_t pid = 0;
  std::size_t crew = 0;
  std::optional<std::vector<std::byte>> blob;  // Of the exchange under way.
  std::optional<runtime::NodeStatus> status;   // The last one told.
  std::uint64_t status_at_ns = 0;
  std::string crash;  // A sentence; empty: none.
  std::uint32_t crashed_rank = runtime::kNoRank;
  ProcessEnd end;
  std::uint64_t left_at_ns = 0;  // When a rank last moved away; 0: never.
};

class Job final : public CrewEvents, public SignalHandler {
 public:
  Job(Loop& loop, LineOutput& output, JobPlan plan);

  void add_crew(std::unique_ptr<Crew> crew);
  Result<> start();
  /// Runs the loop until everything has ended; calls `each_turn` in it, soon again if that
  /// returns true. Writes the report. Returns the exit code.
  int run(FunctionRef<bool()> each_turn);

  /// The job ends with `exit_code`; the first call decides and is told to the user.
  void fail(int exit_code, const std::string& text);
  void warn(const std::string& text);

  [[nodiscard]] const JobPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const std::vector<RankRecord>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<NodeRecord>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint64_t start_ns() const noexcept { return start_ns_; }
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_; }
  /// Asks all nodes for a fresh status (node mode).
  void ask_status();
  /// Orders a move. False: no such rank or node, or not in node mode.
  bool order_move(std::uint32_t rank, std::uint32_t node);
  void give_input(std::span<const std::byte> bytes);
  [[nodiscard]] std::size_t input_bytes_waiting() const;

  void on_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body) override;
  void on_output(std::uint32_t node, OutputStream stream,
                 std::span<const std::byte> bytes) override;
  void on_started(std::uint32_t node, std::uint32_t pid) override;
  void on_process_end(std::uint32_t node, const ProcessEnd& end) override;
  void on_start_failed(std::uint32_t node, std::string_view text) override;
  void on_crew_lost(std::string_view host, std::string_view text) override;
  void on_signal(int signal) override;

 private:
  [[nodiscard]] bool in_nodes() const noexcept { return plan_.job.mode == runtime::JobMode::node; }
  bool handle_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body);
  bool take_hello(std::uint32_t node, std::span<const std::byte> body);
  bool take_blob(std::uint32_t node, std::span<const std::byte> body);
  bool take_rank_event(FrameHeader header, std::span<const std::byte> body);
  void take_move(const runtime::RankMove& move);
  bool take_crash(std::uint32_t node, std::span<const std::byte> body);
  bool take_status(std::uint32_t node, std::span<const std::byte> body);
  void judge_rank_end(std::uint32_t rank, int exit_code);
  void judge_node_end(std::uint32_t node);
  void end_rank(std::uint32_t rank, int exit_code);
  void broadcast(const Frame& frame, std::uint32_t but_node);
  void complete_exchange();
  void step_ending();
  void tell_places(std::uint32_t but_node);
  void tell_of_loss(std::uint32_t node);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] std::uint64_t next_deadline_ns(bool is_busy) const;
  [[nodiscard]] std::string who(std::uint32_t rank) const;
  [[nodiscard]] std::string where(std::uint32_t node) const;

  Loop& loop_;
  LineOutput& output_;
  JobPlan plan_;
  std::vector<std::unique_ptr<Crew>> crews_;
  std::vector<NodeRecord> nodes_;
  std::vector<RankRecord> ranks_;
  std::size_t ended_nodes_ = 0;
  std::size_t ended_ranks_ = 0;
  std::size_t members_ = 0;  // Nodes that have said hello.
  std::size_t blobs_ = 0;    // Of the exchange under way.
  std::uint64_t start_ns_ = 0;
  std::uint64_t tell_places_at_ns_ = 0;  // Ranks have moved; 0: all nodes know their places.
  bool is_ending_ = false;               // Everything is being ended.
  bool has_failed_ = false;              // fail() was called.
  int exit_code_ = 0;                    // Of the first failure.
  std::uint64_t ending_since_ns_ = 0;
  bool is_killed_ = false;     // SIGKILL was sent.
  std::uint32_t signals_ = 0;  // Ctrl-C and the like, so far.
};

}  // namespace sterna::launch
