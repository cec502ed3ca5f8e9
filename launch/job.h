// A running job: what is known of its nodes and ranks, and the one decision how it ends.
//
// A job is running until its verdict falls: all ranks ended well, or a first failure, which is told
// once and ends everything: SIGTERM, then SIGKILL after a grace time, and at last the launcher
// leaves without whoever even that did not end, and says who that was. From the cause to the return
// of run() there are kEndNs at most, whatever processes, hosts and readers of our output do.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
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
  bool is_asked = false;            // For a status, which has not come yet.
  std::uint32_t way_questions = 0;  // That it has not answered yet.
  std::string crash;                // A sentence; empty: none.
  std::uint32_t crashed_rank = runtime::kNoRank;
  ProcessEnd end;
  std::uint32_t departures = 0;   // Ranks that moved away or ended.
  std::uint32_t flush_asked = 0;  // With these departures it was told to hand over what is left.
  std::uint32_t flushed = 0;      // With these departures it had done so.
};

/// From the first cause of a job's end to the return of Job::run, at most.
inline constexpr std::uint64_t kEndNs = 4'000'000'000;

class Job final : public CrewEvents, public SignalHandler {
 public:
  /// All of them live longer. All time is read from `clock`.
  Job(Loop& loop, LineOutput& output, JobPlan plan, Clock& clock);

  void add_crew(std::unique_ptr<Crew> crew);
  /// Starts all crews. If one cannot be, the job has failed.
  void start();
  /// Runs the loop until everything has ended; calls `each_turn` in it, soon again if that
  /// returns true. Writes the report. Returns the exit code.
  int run(FunctionRef<bool()> each_turn);
  /// What run() does after each turn of the loop: what is due by now.
  void step();
  /// When step() has something to do at the latest, if nothing happens before.
  [[nodiscard]] std::uint64_t next_deadline_ns() const;
  /// Nothing is left to do; run() returns exit_code().
  [[nodiscard]] bool is_over() const noexcept { return phase_ == Phase::over; }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

  /// The job ends with `exit_code`; the first failure decides and is told to the user.
  void fail(int exit_code, const std::string& text);
  void warn(const std::string& text);

  [[nodiscard]] const JobPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const std::vector<RankRecord>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<NodeRecord>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint64_t start_ns() const noexcept { return start_ns_; }
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_; }
  /// Asks all nodes for a fresh status (node mode).
  void ask_status();
  /// Asks a node how a message of so many bytes to another one would go: the question's number, or
  /// 0: the node is not there, or does not answer those that it has.
  std::uint32_t ask_way(std::uint32_t from_node, std::uint32_t to_node, std::uint64_t bytes);
  /// The answer, once; none: it has not come.
  std::optional<runtime::WayAnswer> take_way_answer(std::uint32_t number);
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
  // So that nobody sends through a node that a rank has left: told once for all moves of this time.
  static constexpr std::uint64_t kTellPlacesNs = 300'000'000;
  static constexpr std::size_t kWayAnswersMax = 64;
  static constexpr std::uint32_t kWayQuestionsMax = 16;  // Of one node.
  static constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

  enum class Phase : std::uint8_t {
    running,   // Processes run, or their output is still to come.
    leaving,   // All that can end has ended; crews bid farewell to other hosts.
    draining,  // Crews are closed, the report is written; what we print is still to be read.
    over,
  };

  [[nodiscard]] bool in_nodes() const noexcept { return plan_.job.mode == runtime::JobMode::node; }
  bool handle_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body);
  bool take_hello(std::uint32_t node, std::span<const std::byte> body);
  bool take_blob(std::uint32_t node, std::span<const std::byte> body);
  bool take_rank_event(std::uint32_t node, FrameHeader header, std::span<const std::byte> body);
  void take_move(std::uint32_t node, const runtime::RankMove& move);
  bool take_crash(std::uint32_t node, std::span<const std::byte> body);
  bool take_status(std::uint32_t node, std::span<const std::byte> body);
  bool take_explained(std::uint32_t node, std::span<const std::byte> body);
  void judge_rank_end(std::uint32_t rank, int exit_code);
  void judge_node_end(std::uint32_t node);
  void lose(int exit_code, const std::string& text);
  void note_failure(int exit_code) noexcept;
  void stop_if_all_have_ended();
  void end_rank(std::uint32_t rank, int exit_code);
  void broadcast(const Frame& frame, std::uint32_t but_node);
  void complete_exchange();
  void begin_ending();
  void kill_all();
  void step_ending();
  void step_phase();
  void tell_who_is_left();
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] bool is_past(std::uint64_t after_cause_ns) const;
  bool take_flushed(std::uint32_t node, std::span<const std::byte> body);
  void tell_places(std::uint32_t but_node);
  void ask_flushes();
  void note_departure(std::uint32_t node);
  void tell_of_loss(std::uint32_t node);
  [[nodiscard]] std::string who(std::uint32_t rank) const;
  [[nodiscard]] std::string where(std::uint32_t node) const;

  Loop& loop_;
  LineOutput& output_;
  JobPlan plan_;
  Clock& clock_;
  std::vector<std::unique_ptr<Crew>> crews_;
  std::vector<NodeRecord> nodes_;
  std::vector<RankRecord> ranks_;
  std::uint32_t way_questions_ = 0;             // Asked so far; each has its number.
  std::deque<runtime::WayAnswer> way_answers_;  // The last ones; who asked may have gone.
  std::size_t ended_nodes_ = 0;
  std::size_t ended_ranks_ = 0;
  std::size_t members_ = 0;  // Nodes that have said hello.
  std::size_t blobs_ = 0;    // Of the exchange under way.
  std::uint64_t start_ns_ = 0;
  std::uint64_t tell_places_at_ns_ = 0;  // Ranks have moved; 0: all nodes know their places.
  Phase phase_ = Phase::running;
  std::uint64_t phase_since_ns_ = 0;
  bool is_ending_ = false;           // Everything is being ended, or has ended.
  bool has_failed_ = false;          // fail() was called.
  int exit_code_ = 0;                // Of the first failure.
  std::uint64_t stopped_at_ns_ = 0;  // When nodes were told that all ranks have ended; 0: not yet.
  std::uint64_t cause_ns_ = 0;       // When SIGTERM was sent; 0: it was not.
  std::uint64_t ended_at_ns_ = 0;    // When the last process ended; 0: it has not.
  bool is_killed_ = false;           // SIGKILL was sent.
  std::uint32_t signals_ = 0;        // Ctrl-C and the like, so far.
};

}  // namespace sterna::launch
