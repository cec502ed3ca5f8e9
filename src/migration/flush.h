// What is left of ranks in a node that all of them have left: frames that others sent there before
// they knew better, and frames that wait to go out. A node that dies with such frames in it has
// lost messages; one that has handed them all over is no loss.
//
//   this node                              every peer
//   RETIRE, where its ranks are  --------> learns that, sends nothing more for ranks there
//                                <-------- done: behind all frames it had sent before
//   forwards what has come meanwhile
//   PASSED?                      --------> has come: so have all frames sent before
//                                <-------- yes
//   tells the RankHost
//
// Channels keep their order, so each answer pushes before it what was on its way. A peer that is
// lost is passed over: nothing comes from it, and what was meant for it is lost with it.
#pragma once

#include <cstdint>

#include "base/annotate.h"
#include "base/log.h"
#include "base/spin_lock.h"
#include "migration/fault.h"
#include "migration/migrator.h"

namespace sterna::migration {

/// One a node.
class Flush {
 public:
  /// Takes of the options what it needs. Registers its services with rpc: before the first poll.
  Flush(const MigratorOptions& options, Migrator& migrator);
  Flush(const Flush&) = delete;
  Flush& operator=(const Flush&) = delete;

  /// Begins, without waiting; an order while one is carried out takes its place. In the end
  /// RankHost::flushed(number), unless a rank has come meanwhile. By the poller.
  void order(std::uint32_t number) noexcept;

 private:
  enum class Step : std::uint8_t { retire, passed };

  static void run(void* self);
  void carry_out() noexcept;
  [[nodiscard]] bool wait_until_empty() noexcept;
  [[nodiscard]] bool ask_all(Step step) noexcept;
  static Result<rpc::Bytes> on_message(void* self, const rpc::Request& request);

  const MigratorOptions options_;
  Migrator& migrator_;
  const Logger log_;
  const FaultPoint fault_;
  SpinLock lock_;
  bool is_running_ STERNA_GUARDED_BY(lock_) = false;
  std::uint32_t number_ STERNA_GUARDED_BY(lock_) = 0;  // Of the last order.
};

}  // namespace sterna::migration
