// A small node for the tests of the loader: iso space, workers and a program, without a network.
#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/iso_space.h"
#include "program/program.h"
#include "threads/team.h"

namespace sterna::program {

/// Where test programs were built, with a slash at the end.
extern const char* const kTestPrograms;

struct RankOutcome {
  bool has_ended = false;
  int status = -1;
  int signal = 0;
  std::string out, err;
  std::vector<std::string> pieces;  // What each call of write_output() brought.
};

struct HostOptions {
  std::uint32_t rank_count = 1;
  std::uint32_t worker_count = 1;
  std::size_t stack_bytes = std::size_t{1} << 20;
};

class TestHost final : private HostCalls {
 public:
  explicit TestHost(const HostOptions& options);
  ~TestHost() override;

  /// Opens and prepares; the error is the program's.
  Result<> open(const std::string& path);
  Result<> create(std::uint32_t rank, const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment = {});
  /// Starts what was created and waits until all have ended or left.
  void run();
  /// open, create all ranks, run.
  std::vector<RankOutcome>& run(const std::string& name, std::vector<std::string> arguments = {},
                                const std::vector<std::string>& environment = {});

  /// What a rank calls as sterna_test_pause() (testdata/test_calls.h): leaves the processor. The
  /// ranks that did are in paused() when run() returns; resume() and run() go on.
  void pause(memory::RankSlot& slot);
  [[nodiscard]] std::vector<std::uint32_t> paused() const { return paused_; }
  void resume_paused();
  /// A rank that another process sent has its bytes in place.
  void take_in(memory::RankSlot& slot);
  /// A paused rank leaves this node.
  void let_go(std::uint32_t rank);

  [[nodiscard]] memory::IsoSpace& space() { return *space_; }
  [[nodiscard]] Program& program() { return *program_; }
  [[nodiscard]] threads::Team& team() { return *team_; }
  [[nodiscard]] memory::RankSlot& slot(std::uint32_t rank) {
    return *memory::rank_slot_address(rank);
  }
  [[nodiscard]] RankOutcome& outcome(std::uint32_t rank) { return outcomes_[rank]; }
  std::atomic<std::uint64_t> sleeps{0}, yields{0};
  std::string input;  // Of rank 0.

  static TestHost* current;

 private:
  [[noreturn]] void rank_exit(memory::RankSlot& slot, int status) noexcept override;
  [[noreturn]] void rank_abort(memory::RankSlot& slot, int signal) noexcept override;
  void write_output(memory::RankSlot& slot, OutputStream stream,
                    std::string_view lines) noexcept override;
  long read_input(memory::RankSlot& slot, std::span<char> bytes) noexcept override;
  void yield(memory::RankSlot& slot) noexcept override;
  void sleep_for(memory::RankSlot& slot, std::uint64_t duration_ns) noexcept override;
  [[noreturn]] void leave(memory::RankSlot& slot) noexcept;

  const HostOptions options_;
  std::unique_ptr<memory::IsoSpace> space_;
  std::unique_ptr<threads::Team> team_;
  std::unique_ptr<Program> program_;
  std::vector<RankOutcome> outcomes_;
  std::vector<std::uint32_t> created_;  // Not started.
  std::vector<std::uint32_t> paused_;
  std::vector<std::uint32_t> mapped_;
  std::mutex lock_;  // Of outcomes and lists.
  std::atomic<std::uint32_t> running_{0};
};

}  // namespace sterna::program
