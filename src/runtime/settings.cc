// The table of all settings: those of the runtime, of the transport, of each driver.
#include "runtime/settings.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "balance/policy.h"
#include "base/log.h"
#include "net/driver.h"
#include "net/transport.h"

namespace sterna::runtime {
namespace {

constexpr std::array kRuntimeTunables{
    kDrivers,    kLog,         kStackSize,        kSpin,           kTick,
    kBackground, kOneCaller,   kPreemption,       kSlice,          kTakeOver,
    kCarriers,   kBalance,     kBalanceInterval,  kFault,          kMoveTimeout,
    kShuffle,    kShuffleSeed, kRankMemory,       kDirectMessages, kAutoBubbles,
    kOwnLocals,  kQueueArity,  kFollowProcessors, kAudit,          kVisible,
    kPolicy,     kWorkerFirst, kWorkerStride,     kTrace,          kTraceBytes,
    kPackChecks};

std::vector<std::span<const Tunable>> gather() {
  std::vector<std::span<const Tunable>> tables{kRuntimeTunables, net::transport_tunables()};
  for (const net::DriverEntry* driver : net::builtin_drivers()) {
    tables.push_back(driver->tunables);
  }
  for (const net::DecoratorEntry* decorator : net::builtin_decorators()) {
    tables.push_back(decorator->tunables);
  }
  return tables;
}

}  // namespace

Result<> verify_balancer(std::string_view text) {
  const Result<balance::Choice> choice = balance::choose_policy(text);
  return choice ? Result<>{Done{}} : choice.error();
}

Error first_worker_error(std::size_t first, std::size_t processors) {
  return {Errc::invalid_argument,
          fmt::format("setting worker_first={}: this node has {} processor{}, "
                      "which are counted from 0",
                      first, processors, processors == 1 ? "" : "s")};
}

Result<> verify_log(std::string_view text) {
  LogOptions unused;
  return parse_log_levels(text, unused);
}

std::span<const std::span<const Tunable>> all_tunables() {
  static const std::vector<std::span<const Tunable>> kTables = gather();
  return kTables;
}

}  // namespace sterna::runtime
