// The registry is a table, not a set of static constructors: its order is visible, and nothing runs
// before main(). To add a driver: declare its entry in builtin.h, list it here, and the contract
// tests of net/driver_test.cc run on it.
#include "net/drivers/builtin.h"

#include <array>

namespace sterna::net {

std::span<const DriverEntry* const> builtin_drivers() noexcept {
  static constexpr std::array kDrivers{&kShmDriver, &kUnixDriver, &kTcpDriver, &kFabricDriver,
                                       &kReplayDriver};
  return kDrivers;
}

std::span<const DecoratorEntry* const> builtin_decorators() noexcept {
  static constexpr std::array kDecorators{
      &kCountDecorator,   &kDelayDecorator,     &kDropDecorator,
      &kCorruptDecorator, &kDuplicateDecorator, &kReorderDecorator,
      &kCutDecorator,     &kRecordDecorator,    &kTraceDecorator};
  return kDecorators;
}

}  // namespace sterna::net
