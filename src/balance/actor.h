// Measures the ranks of a job, asks the policy, and has ranks moved: at intervals, and when the
// program says that now is a good moment (sterna_balance_point).
//
// Node 0 decides, in a user thread of its own; every node answers for its ranks. A node's answer is
// one message, however many ranks it has.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "balance/policy.h"
#include "base/annotate.h"
#include "base/log.h"
#include "base/spin_lock.h"
#include "migration/migrator.h"
#include "progress/completion.h"
#include "rpc/rpc.h"
#include "threads/team.h"

namespace sterna::balance {

struct ActorOptions {
  Choice policy;
  std::uint64_t interval_ns = 500'000'000;
  net::Transport* transport = nullptr;  // All outlive the actor.
  progress::Progress* progress = nullptr;
  rpc::Rpc* rpc = nullptr;
  threads::Team* team = nullptr;
  migration::Residents* residents = nullptr;
  migration::Migrator* migrator = nullptr;
  const Log* log = nullptr;
};

/// What the end-of-run report says of balancing; of node 0.
struct ActorStatistics {
  std::uint64_t rounds = 0;
  std::uint64_t moves_ordered = 0;
  double imbalance_first = 0.0;  // Most loaded node over the average, at the first round with load.
  double imbalance_last = 0.0;
};

/// One a node.
class Actor {
 public:
  /// Registers its services with rpc, and itself for losses with the transport: before the first
  /// poll.
  explicit Actor(const ActorOptions& options);
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  /// On node 0: starts the deciding thread. Elsewhere, and with the policy none: nothing.
  [[nodiscard]] Result<> start();
  /// The deciding thread ends soon. Does not wait.
  void stop() noexcept;

  /// Called by every rank, in runtime code: waits until all ranks of the job that still run have
  /// called it and node 0 has decided; without node 0, for nobody. The caller goes to a
  /// safe point next. Switches.
  void point(memory::RankSlot& slot) noexcept;
  /// The rank has ended: nobody waits for it at a point.
  void rank_ended(std::uint32_t rank) noexcept;

  [[nodiscard]] ActorStatistics statistics() const noexcept;

 private:
  struct Decider;

  static Result<rpc::Bytes> on_report(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_move(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_arrived(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_release(void* self, const rpc::Request& request);
  static void on_lost(void* self, std::uint32_t node, std::string_view reason) noexcept;
  static void run_decider(void* self);

  [[nodiscard]] Result<Measures> measure();
  [[nodiscard]] double processor_share() noexcept;
  void smooth(Measures& measures);
  void decide();
  void carry_out(const Plan& plan);
  [[nodiscard]] bool are_all_at_point();
  void release_all();
  void release(std::uint64_t number) noexcept;
  void wake_decider() noexcept;

  const ActorOptions options_;
  const Logger log_;
  SpinLock lock_;
  // Ranks of this node at a point, by the number under which node 0 was told of them. A release
  // says up to which number it has heard: it may come late, when a rank that it has let go at
  // another node has come here and waits at the next point. The completions lie on the stacks of
  // the ranks, which do not move meanwhile.
  std::map<std::uint64_t, progress::Completion*> waiting_ STERNA_GUARDED_BY(lock_);
  std::uint64_t last_number_ STERNA_GUARDED_BY(lock_) = 0;
  bool is_decider_lost_ STERNA_GUARDED_BY(lock_) = false;
  // Of processor_share(): called by the report service only, one at a time.
  std::uint64_t last_busy_ns_ = 0;
  std::uint64_t last_cpu_ns_ = 0;
  const std::unique_ptr<Decider> decider_;  // Null but on node 0.
};

}  // namespace sterna::balance
