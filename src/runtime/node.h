// Node mode: one process of a job whose ranks are mobile threads. Everything of Runtime, and above
// it a team of workers, remote calls, migration and balancing.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "balance/actor.h"
#include "memory/iso_space.h"
#include "migration/flush.h"
#include "migration/migrator.h"
#include "migration/residents.h"
#include "rpc/rpc.h"
#include "runtime/leases.h"
#include "runtime/node_load.h"
#include "runtime/rank_runner.h"
#include "runtime/runtime.h"
#include "runtime/session_numbers.h"
#include "threads/team.h"

namespace sterna::runtime {

/// One a process: crash handler and the current rank are the process's.
class Node final : private ControlEvents, private migration::RankHost {
 public:
  /// Joins the job of `control` and prepares to run its ranks. `runner` outlives the node.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(std::unique_ptr<ControlClient> control,
                                                          RankRunner& runner);

  /// Creates the ranks that start here.
  [[nodiscard]] Result<> create_ranks();

  /// Runs ranks on this kernel thread and the team's until the launcher ends the job. Sends the
  /// final status. The caller leaves the process next: nothing is torn down.
  void run() noexcept;

  // --- What the code of ranks asks for, on the rank's stack -------------------------------------

  /// The rank has ended. Does not return.
  [[noreturn]] void end_rank(memory::RankSlot& slot, int exit_code) noexcept;
  /// As by `signal`: ends the job. Does not return.
  [[noreturn]] void kill_rank(memory::RankSlot& slot, int signal) noexcept;
  /// Waits until every rank is at its balance point, and moves if it is told to. Switches.
  void balance_point(RankContext& rank) noexcept;

  [[nodiscard]] Runtime& runtime() noexcept { return *runtime_; }
  [[nodiscard]] threads::Team& team() noexcept { return *team_; }
  [[nodiscard]] rpc::Rpc& rpc() noexcept { return *rpc_; }
  [[nodiscard]] migration::Migrator& migrator() noexcept { return *migrator_; }
  [[nodiscard]] RankRunner& runner() noexcept { return runner_; }

 private:
  explicit Node(RankRunner& runner) noexcept : runner_{runner} {}

  [[nodiscard]] Result<> open_memory();
  [[nodiscard]] Result<> open_team();
  void open_mobility();
  [[nodiscard]] Result<> compare_fingerprints();
  [[nodiscard]] Result<> create_rank(std::uint32_t rank);
  void clear_rank(memory::RankSlot& slot) noexcept;
  void report(bool is_final) noexcept;

  static void move_rank(RankContext& rank, std::uint32_t to_node) noexcept;
  static void after_end(threads::Thread& thread, void* slot) noexcept;
  static void on_crash(const threads::CrashInfo& crash) noexcept;

  void on_peer_lost(std::uint32_t node) noexcept override;
  void on_status_wanted() noexcept override;
  void on_rank_moved(const RankMove& move) noexcept override;
  void on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept override;
  void on_flush_ordered(std::uint32_t number) noexcept override;
  void on_stop() noexcept override;

  std::string describe_blockers(memory::RankSlot& slot) noexcept override;
  void for_each_image_extent(memory::RankSlot& slot,
                             FunctionRef<void(std::span<std::byte>)> visit) noexcept override;
  Result<> prepare(std::uint32_t rank) noexcept override;
  void arrive(memory::RankSlot& slot) noexcept override;
  void handing_over(std::uint32_t rank, std::uint32_t node, std::uint64_t move) noexcept override;
  void flushed(std::uint32_t number) noexcept override;
  void stayed(std::uint32_t rank, std::uint32_t node, const std::string& reason) noexcept override;

  RankRunner& runner_;
  std::unique_ptr<Runtime> runtime_;  // Built in this order; all constant after open().
  std::unique_ptr<Leases> leases_;
  std::unique_ptr<memory::IsoSpace> space_;
  std::unique_ptr<threads::Team> team_;
  std::unique_ptr<rpc::Rpc> rpc_;
  migration::Residents residents_;
  std::unique_ptr<NodeLoadSource> load_source_;
  SessionNumbers session_numbers_;
  std::unique_ptr<migration::Migrator> migrator_;
  std::unique_ptr<migration::Flush> flush_;
  std::unique_ptr<balance::Actor> balancer_;

  SpinLock report_lock_;  // What the reports say of ranks that did not move.
  std::map<std::string, std::uint64_t> refusals_ STERNA_GUARDED_BY(report_lock_);
  std::map<std::uint32_t, std::string> last_refusal_ STERNA_GUARDED_BY(report_lock_);
  std::vector<RankStatus> ended_ STERNA_GUARDED_BY(report_lock_);
};

}  // namespace sterna::runtime
