// The entry of the driver fabric; without libfabric's headers at build time, what says so.
#include <algorithm>

#include "net/drivers/builtin.h"
#include "net/drivers/fabric/boards.h"
#include "net/drivers/fabric/tunables.h"
#include "net/drivers/settings_of.h"
#include "net/opening/bootstrap.h"

#if __has_include(<rdma/fabric.h>)
#include "net/drivers/fabric/driver.h"
#endif

namespace sterna::net {
namespace fabric {
namespace {

#if __has_include(<rdma/fabric.h>)

struct Board {
  std::string_view provider;
  std::string_view domain;
};

/// "verbs:mlx5_0" is one board; what the instance does not say the settings do. No provider has a
/// colon in its name, domains may.
Board board_of(const DriverOptions& given) noexcept {
  const std::size_t colon = given.instance.find(':');
  return {.provider =
              given.instance.empty() ? text_of(given, kProvider) : given.instance.substr(0, colon),
          .domain = colon == std::string_view::npos ? text_of(given, kDomain)
                                                    : given.instance.substr(colon + 1)};
}

EndpointOptions endpoint_options(const DriverOptions& given) {
  const Board board = board_of(given);
  return {.provider = std::string{board.provider},
          .domain = std::string{board.domain},
          .may_read = parse_tunable(kRead, text_of(given, kRead)).value() != 0,
          .message_bytes = static_cast<std::uint32_t>(number_of(given, kMessageBytes))};
}

std::vector<std::string> devices(const DriverOptions& given) noexcept {
  const std::string device = Endpoint::device(endpoint_options(given));
  return device.empty() ? std::vector<std::string>{} : std::vector{device};
}

ProbedDriver probe(const DriverOptions& given) noexcept {
  const EndpointOptions options = endpoint_options(given);
  Result<bool> can_read = Endpoint::probe(options);
  return can_read ? ProbedDriver{capabilities_of(options, can_read.value())}
                  : ProbedDriver{capabilities_of(options, options.may_read), can_read.error().text};
}

Result<std::unique_ptr<Driver>> open_fabric(const DriverOptions& given) noexcept {
  const JobMap& job = given.bootstrap->job();
  const auto window = static_cast<std::uint32_t>(number_of(given, kWindow));
  FabricDriver::Options options{.endpoint = endpoint_options(given), .window = window};
  options.endpoint.completions_max = std::min(4 * window * job.node_count, 1U << 16);
  std::unique_ptr<FabricDriver> driver{new (std::nothrow) FabricDriver(given, std::move(options))};
  if (driver == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> opened = driver->open(given); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Driver>{std::move(driver)};
}
constexpr Capabilities kEntryProfile = kProfile;

std::vector<std::string> find_boards() {
  return Endpoint::boards();
}

#else

Error no_headers() {
  return {Errc::unsupported, "this build was made without libfabric (libfabric-dev)"};
}
Result<std::unique_ptr<Driver>> open_fabric(const DriverOptions&) noexcept {
  return no_headers();
}
ProbedDriver probe(const DriverOptions&) noexcept {
  return {Capabilities{}, no_headers().text};
}
std::vector<std::string> devices(const DriverOptions&) noexcept {
  return {};
}
std::vector<std::string> find_boards() {
  return {};
}
constexpr Capabilities kEntryProfile{};

#endif

}  // namespace

std::vector<std::string> boards() {
  return find_boards();
}

}  // namespace fabric

constinit const DriverEntry kFabricDriver{
    .name = "fabric",
    .summary = "nodes on networks that libfabric knows: InfiniBand, Slingshot, EFA, Omni-Path",
    .tunables = fabric::kTunables,
    .open = fabric::open_fabric,
    .profile = fabric::kEntryProfile,
    .instances = "a provider of libfabric, like verbs or tcp, perhaps with a domain: verbs:mlx5_0",
    .is_on_request = true,
    .devices = fabric::devices,
    .probe = fabric::probe,
};

}  // namespace sterna::net
