// The table of all settings: those of the runtime, of the transport, of each driver.
#include "runtime/settings.h"

#include <array>
#include <vector>

#include "net/driver.h"
#include "net/transport.h"

namespace sterna::runtime {
namespace {

constexpr std::array kRuntimeTunables{
    kDrivers,         kLog,   kStackSize, kSpin,        kBalance,
    kBalanceInterval, kFault, kShuffle,   kShuffleSeed, kRankMemory};

std::vector<std::span<const Tunable>> gather() {
  std::vector<std::span<const Tunable>> tables{kRuntimeTunables, net::transport_tunables()};
  for (const net::DriverEntry* driver : net::builtin_drivers()) {
    tables.push_back(driver->tunables);
  }
  return tables;
}

}  // namespace

std::span<const std::span<const Tunable>> all_tunables() {
  static const std::vector<std::span<const Tunable>> kTables = gather();
  return kTables;
}

}  // namespace sterna::runtime
